//! An index in one process: the owner's half asks the server's, which holds no key.

use std::sync::Arc;

use ciphervec_owner::search::{Selection, ServerIndex, ServerTimings, Sink};

use crate::error::Result;
use crate::half::{Ask, Known, OwnersHalf, Wish};
use crate::host::Host;
use crate::matches::{Hits, Matches, OpenedAnswer, nearest};
use crate::replica::SEGMENT_ROWS;
use crate::replica::asking::{LEAST_WORD, LOCAL, QUERY_ROWS};
use crate::threads::{heavy, runner};

/// What was found.
#[derive(Debug)]
pub struct Searched {
    /// Of each query.
    pub answer: OpenedAnswer,
    /// What the last message took the server's half.
    pub timings: Option<ServerTimings>,
}

impl OwnersHalf {
    /// The rows closest to each of the queries, end to end, by a server's half that has the segments known here.
    ///
    /// # Errors
    /// As [`OwnersHalf::open`].
    pub async fn search(
        &self,
        host: &dyn Host,
        server: &ServerIndex,
        (rows, epoch): (&[f32], u32),
        wish: &Wish,
    ) -> Result<Searched> {
        self.search_whole(host, server, (rows, epoch), wish, LOCAL).await
    }

    /// The same, where an answer of more than so many bytes is opened as it comes.
    async fn search_whole(
        &self,
        host: &dyn Host,
        server: &ServerIndex,
        (rows, epoch): (&[f32], u32),
        wish: &Wish,
        whole: usize,
    ) -> Result<Searched> {
        let centers: Vec<Vec<f32>> =
            self.read().centres().into_iter().map(<[f32]>::to_vec).collect();
        let answer = OpenedAnswer {
            hits: Vec::new(),
            exact: true,
            checked: true,
            owners_only: false,
            disqualified: Vec::new(),
        };
        let done = Searched { answer, timings: None };
        let mut asking = Asking { half: self, host, server, epoch, wish, whole, done };
        if centers.len() < 2 {
            let center = centers.first().map(Vec::as_slice);
            asking.done.answer.hits = asking.ask_all(rows, center, None).await?;
            return Ok(asking.done);
        }
        // Rows that lie far from the first were sealed around a center of their own, and are asked for around it.
        let mut parts = vec![Vec::new(); rows.len() / self.owner.spec().dimension()];
        for center in &centers {
            let around = self.view(&self.read()).around(center, None);
            if around.counts().next().is_some() {
                let found = asking.ask_all(rows, Some(center), Some(Arc::new(around))).await?;
                parts.iter_mut().zip(found).for_each(|(part, found)| part.push(found));
            }
        }
        let count = wish.wanted.count;
        let answer = &mut asking.done.answer;
        let (exact, checked) = (answer.exact, answer.checked);
        let matches = |hits: Hits| Matches {
            ids: hits.ids,
            distances: hits.distances,
            scores: hits.scores,
            exact,
            checked,
        };
        answer.hits = parts
            .into_iter()
            .map(|part: Vec<Hits>| nearest(part.into_iter().map(matches).collect(), count).into())
            .collect();
        Ok(asking.done)
    }
}

/// One search, and what is known of it by now.
struct Asking<'a> {
    half: &'a OwnersHalf,
    host: &'a dyn Host,
    server: &'a ServerIndex,
    epoch: u32,
    wish: &'a Wish,
    whole: usize,
    done: Searched,
}

impl Asking<'_> {
    /// Queries that are sent in one message. An index answers some segments after the others, where a message is short enough: encrypted
    /// queries are expanded once, and so only one of them where an answer is long.
    fn message_rows(&self) -> usize {
        let rows = self.half.read().len();
        let at_once = if self.half.is_noisy() { rows } else { rows.min(SEGMENT_ROWS) };
        (LOCAL / (at_once.max(1) * LEAST_WORD)).clamp(1, QUERY_ROWS)
    }

    async fn ask_all(
        &mut self,
        rows: &[f32],
        center: Option<&[f32]>,
        selection: Option<Arc<Selection>>,
    ) -> Result<Vec<Hits>> {
        let mut found = Vec::new();
        for rows in rows.chunks(self.message_rows() * self.half.owner.spec().dimension()) {
            found.extend(self.ask(rows, center, selection.clone()).await?);
        }
        Ok(found)
    }

    async fn ask(
        &mut self,
        rows: &[f32],
        center: Option<&[f32]>,
        selection: Option<Arc<Selection>>,
    ) -> Result<Vec<Hits>> {
        let (half, epoch) = (self.half, self.epoch);
        let query = half.query(rows, Ask { epoch, center, ..Ask::default() })?;
        let known = Known { selection, ..half.known(None) };
        let long = known.live * query.query().len() * LEAST_WORD > self.whole;
        let bytes = query.query().to_bytes();
        let lender = half.owner.lender(query.query())?;
        let lender = lender.as_deref();
        let opened = if long {
            let receiver = half.receive_known(self.host, &query, self.wish, known, true).await?;
            let mut lost = None;
            let mut write = |piece: &[u8]| {
                lost = receiver.write(piece.to_vec()).err();
                lost.is_none()
            };
            let mut sink = Sink { run: &runner, write: &mut write };
            let timings = self.server.evaluate_into(bytes, lender, &mut sink)?;
            if let Some(error) = lost {
                return Err(error);
            }
            self.done.timings = Some(timings);
            half.finish(self.host, &query, &receiver)?.0
        } else {
            let answer = heavy(|| self.server.evaluate_beside(bytes, lender))?;
            self.done.timings = Some(answer.timings);
            half.open_known(self.host, &query, &answer.bytes, self.wish, known).await?.0
        };
        let answer = &mut self.done.answer;
        answer.exact &= opened.exact;
        answer.checked &= opened.checked;
        answer.owners_only |= opened.owners_only;
        answer.disqualified.extend(opened.disqualified);
        Ok(opened.hits)
    }
}

#[cfg(test)]
mod tests {
    use ciphervec_owner::search::{Expected, RotationState, SealedSidecar, Standing};
    use ciphervec_owner::{Id, IndexSpec, Keys, Metric, Mode, Precision};

    use super::*;
    use crate::block_on;
    use crate::face::Face;
    use crate::host::fake::Fake;
    use crate::matches::Wanted;

    const D: usize = 8;

    /// An index of these rows, each batch a segment around its own center.
    fn index(metric: Metric, batches: &[&[f32]]) -> (OwnersHalf, ServerIndex) {
        let keys = Keys::generate().unwrap();
        let spec = IndexSpec::new("rows", D as u32, metric, Mode::Sealed, Precision::Standard);
        let spec = spec.unwrap();
        let state = RotationState::default();
        let half = OwnersHalf::new(Face::Rust, &keys, spec.clone(), &state, Vec::new()).unwrap();
        let mut server = ServerIndex::new(spec).unwrap();
        let evaluation = half.owner().evaluation(0).unwrap().unwrap();
        server.set_evaluation_keys(&evaluation.to_bytes()).unwrap();
        let mut next = 0;
        for rows in batches {
            let count = rows.len() / D;
            let ids: Vec<_> = (next..next + count as i64).map(Id::Number).collect();
            next += count as i64;
            let sealed = half.seal(rows, &ids, &Expected::rows(count), None).unwrap();
            let segment = server.add(sealed.segment.clone()).unwrap();
            let sidecar =
                SealedSidecar { segment, sidecar: &sealed.sidecar, wrap: None, rows: None };
            let opened = half.owner().open_sidecars(&[sidecar]).remove(0).unwrap();
            let mut known = half.write();
            known.attach_opened(half.owner(), opened, (&[], &[]), Standing::New).unwrap();
        }
        (half, server)
    }

    fn rows(count: usize, seed: u64, around: f32) -> Vec<f32> {
        let number = |i: usize| {
            let hash = blake3::hash(&[seed.to_le_bytes(), (i as u64).to_le_bytes()].concat());
            f32::from(hash.as_bytes()[0]) / 128.0 - 1.0 + around
        };
        (0..count * D).map(number).collect()
    }

    fn cosine(a: &[f32], b: &[f32]) -> f64 {
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
        };
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    }

    /// The nearest by squared distance, in double precision.
    fn nearest_to(query: &[f32], all: &[f32]) -> usize {
        let distance = |row: &[f32]| -> f64 {
            row.iter().zip(query).map(|(x, q)| (f64::from(*x) - f64::from(*q)).powi(2)).sum()
        };
        let all: Vec<_> = all.chunks(D).map(distance).collect();
        (0..all.len()).min_by(|a, b| all[*a].total_cmp(&all[*b])).unwrap()
    }

    fn wish(count: usize) -> Wish {
        Wish { wanted: Wanted { count: Some(count), ..Wanted::default() }, ..Wish::default() }
    }

    #[test]
    fn a_long_answer_gives_what_a_short_one_does() {
        let all = rows(700, 1, 0.0);
        let (half, server) = index(Metric::Cosine, &[&all[..600 * D], &all[600 * D..]]);
        let (host, asked) = (Fake::default(), &all[3 * D..8 * D]);
        let find = |whole| {
            let wish = wish(4);
            let found = half.search_whole(&host, &server, (asked, 0), &wish, whole);
            block_on(found).unwrap().answer
        };
        // Each asks anew, with noise of its own.
        for found in [find(usize::MAX), find(0)] {
            assert!(found.owners_only && found.checked);
            for (number, (query, hits)) in asked.chunks(D).zip(&found.hits).enumerate() {
                assert_eq!((&hits.ids[0], hits.ids.len()), (&Id::Number(number as i64 + 3), 4));
                for (id, score) in hits.ids.iter().zip(&hits.scores) {
                    let Id::Number(row) = id else { panic!("{id:?}") };
                    assert!((cosine(query, &all[*row as usize * D..][..D]) - score).abs() < 1e-3);
                }
            }
        }
    }

    #[test]
    fn rows_around_several_centers_are_found_as_one() {
        let (near, far) = (rows(60, 2, 1e5), rows(60, 3, -1e6));
        let (half, server) = index(Metric::L2, &[&near, &far]);
        assert_eq!(half.read().centres().len(), 2);
        let all = [&*near, &*far].concat();
        let asked = [&near[5 * D..7 * D], &far[9 * D..10 * D]].concat();
        let host = Fake::default();
        let found = block_on(half.search(&host, &server, (&asked, 0), &wish(70))).unwrap().answer;
        for (query, hits) in asked.chunks(D).zip(&found.hits) {
            assert_eq!(hits.ids[0], Id::Number(nearest_to(query, &all) as i64));
            assert_eq!(hits.ids.len(), 70);
            assert!(hits.distances.is_sorted());
        }
    }
}
