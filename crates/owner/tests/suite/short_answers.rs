//! Answers in words as long as each level needs, beside those of the first version; segments packed for other levels.

use ciphervec_arith::sample::Stream;
use ciphervec_he_secret::wire::{self, Kind};
use ciphervec_owner::search::{
    AnswerFormat, Expected, Owner, QueryOptions, Retrieval, SegmentDirectory, ServerIndex,
};
use ciphervec_owner::{Id, IndexSpec, Keys, Metric, Mode, Network, Precision};

const FORMATS: [AnswerFormat; 2] = [AnswerFormat::First, AnswerFormat::Short];
const SLOW: Network = Network { bytes_per_second: 1e5, round_trip: 0.0 };
const FAST: Network = Network { bytes_per_second: 1e12, round_trip: 0.0 };

pub fn random(rows: usize, dimension: usize, seed: u8) -> Vec<f32> {
    let mut words = vec![0u64; rows * dimension];
    Stream::new(&[seed; 32], 0).uniform_bits(24, &mut words);
    words.iter().map(|&word| word as f32 / 8_388_608.0 - 1.0).collect()
}

pub struct Both {
    pub owner: Owner,
    pub server: ServerIndex,
    pub directory: SegmentDirectory,
    levels: Vec<u8>,
}

impl Both {
    fn new(keys: &Keys, mode: Mode, dimension: usize) -> Self {
        Self::with(keys, mode, Precision::Standard, Metric::Cosine, dimension)
    }

    pub fn with(
        keys: &Keys,
        mode: Mode,
        precision: Precision,
        metric: Metric,
        dimension: usize,
    ) -> Self {
        let spec = IndexSpec::new("s", dimension as u32, metric, mode, precision).unwrap();
        let mut server = ServerIndex::new(spec.clone()).unwrap();
        if let Some(evaluation) = keys.evaluation(&spec, 0).unwrap() {
            server.set_evaluation_keys(&evaluation.to_bytes()).unwrap();
        }
        let owner = Owner::new(keys, spec).unwrap();
        Both { owner, server, directory: SegmentDirectory::new(), levels: Vec::new() }
    }

    pub fn add(&mut self, rows: &[f32], first: i64, expected: &Expected) {
        let count = (rows.len() / self.owner.spec().dimension()) as i64;
        let ids: Vec<Id> = (first..first + count).map(Id::Number).collect();
        let sealed = self.owner.seal_expecting(rows, &ids, expected).unwrap();
        self.directory.add(&self.owner, sealed.id, &sealed.sidecar, &[]).unwrap();
        self.server.add(sealed.segment).unwrap();
        self.levels.push(sealed.level);
    }

    /// Bytes of the answer and, for every query, the cosine of each row.
    fn cosines(
        &self,
        queries: &[f32],
        rows: usize,
        format: AnswerFormat,
    ) -> (usize, Vec<Vec<f64>>) {
        let query = self
            .owner
            .query(queries, &self.directory, QueryOptions { format, ..QueryOptions::default() })
            .unwrap();
        let answer = self.server.evaluate(query.to_bytes()).unwrap().bytes;
        assert!(self.server.answer_len(query.to_bytes()).unwrap() <= answer.len() as u64);
        let all = Retrieval::TopK(rows);
        let opened = self.owner.open(&query, &answer, &self.directory, all).unwrap();
        let places = opened.hits.into_iter().map(|hits| {
            assert_eq!(hits.len(), rows);
            let mut cosines = vec![f64::NAN; rows];
            for hit in hits {
                let Id::Number(id) = hit.id else { panic!("numbers were given") };
                cosines[id as usize] = hit.value;
            }
            cosines
        });
        (answer.len(), places.collect())
    }
}

fn truth(rows: &[f32], query: &[f32]) -> Vec<f64> {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let rows = rows.chunks_exact(query.len());
    rows.map(|row| dot(row, query) / (dot(row, row) * dot(query, query)).sqrt()).collect()
}

fn deviation(errors: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) =
        errors.fold((0.0, 0.0), |(count, sum), error| (count + 1.0, sum + error * error));
    f64::sqrt(sum / count)
}

/// Segments of several levels, as large and lone additions leave them; the bounds are nine and a half standard deviations
/// (2⁻⁶⁴ a score) and the rounding of what is reported.
#[test]
fn every_format_gives_the_cosines_and_newer_ones_in_fewer_bytes() {
    let keys = Keys::generate().unwrap();
    for (mode, dimension) in [(Mode::Sealed, 96), (Mode::Sealed, 300), (Mode::SealedQuery, 96)] {
        let mut both = Both::new(&keys, mode, dimension);
        let rows = random(4200, dimension, 1);
        let (many, few) = rows.split_at(4100 * dimension);
        both.add(many, 0, &Expected { rows: 4100, network: SLOW });
        both.add(&few[..99 * dimension], 4100, &Expected::rows(99));
        both.add(&few[99 * dimension..], 4199, &Expected::rows(1));
        assert!(both.levels[0] > both.levels[1] && both.levels[1] > both.levels[2]);
        let queries = random(3, dimension, 2);
        let mut lengths = Vec::new();
        for format in FORMATS {
            let (bytes, found) = both.cosines(&queries, 4200, format);
            lengths.push(bytes);
            for (query, cosines) in queries.chunks_exact(dimension).zip(found) {
                let truth = truth(&rows, query);
                let errors = || cosines.iter().zip(&truth).map(|(found, truth)| found - truth);
                // Rows at a level far above the query's deepest lose to words of one length.
                let widest = if format == AnswerFormat::First { 5e-3 } else { 3e-4 };
                assert!(errors().all(|error| error.abs() < widest), "{mode:?} {format:?}");
                // 3.4e-5 at the deepest level. Over 4,100 rows that scatters by 1.1 %: six times as much is left.
                let bulk = deviation(errors().take(4100));
                assert!(bulk < 3.65e-5, "{format:?}: {bulk:e}");
            }
        }
        // For so few rows more precision may take more bytes, but for mask sums.
        assert!(mode == Mode::SealedQuery || lengths[1] < lengths[0], "{mode:?}: {lengths:?}");
    }
}

/// What `optimize` does to an index that has grown.
#[test]
fn segments_packed_anew_answer_as_before_within_the_bounds() {
    let keys = Keys::generate().unwrap();
    let (dimension, count) = (64, 3000);
    let (rows, queries) = (random(count, dimension, 3), random(4, dimension, 4));
    let mut answers = Vec::new();
    let mut levels: Vec<u8> = Vec::new();
    for network in [FAST, Network::default(), SLOW] {
        for expected in [500, 3000, 1_000_000] {
            let mut both = Both::new(&keys, Mode::Sealed, dimension);
            let step = if expected == 3000 { count } else { 1000 };
            for (index, part) in rows.chunks(step * dimension).enumerate() {
                both.add(part, (step * index) as i64, &Expected { rows: expected, network });
            }
            levels.extend(&both.levels);
            answers.push(both.cosines(&queries, count, AnswerFormat::default()).1);
        }
    }
    levels.sort_unstable();
    levels.dedup();
    assert!(levels.len() >= 3, "{levels:?}");
    let typical = 2.5e-5 * f64::sqrt(2.0);
    for other in &answers[1..] {
        for (one, other) in answers[0].iter().zip(other) {
            let apart = || one.iter().zip(other).map(|(one, other)| one - other);
            assert!(deviation(apart()) < typical, "{:e}", deviation(apart()));
            assert!(apart().all(|apart| apart.abs() < 9.5 * typical + 2.0 * f64::exp2(-17.0)));
        }
    }
}

/// A query names its version, so that a server which does not know it says so, and the answer has the same.
#[test]
fn versions_are_said_and_held_against_what_was_asked() {
    let keys = Keys::generate().unwrap();
    let mut both = Both::new(&keys, Mode::Sealed, 8);
    both.add(&random(40, 8, 1), 0, &Expected::rows(40));
    let question = random(1, 8, 2);
    let mut sent = Vec::new();
    for format in FORMATS {
        let query = both
            .owner
            .query(&question, &both.directory, QueryOptions { format, ..QueryOptions::default() })
            .unwrap();
        let version = if format == AnswerFormat::First { 1 } else { 2 };
        assert_eq!(wire::open_version(Kind::Query, 2, query.to_bytes()).unwrap().0, version);
        assert_eq!(wire::open(Kind::Query, query.to_bytes()).is_ok(), version == 1);
        let answer = both.server.evaluate(query.to_bytes()).unwrap().bytes;
        assert_eq!(wire::open_version(Kind::Response, 2, &answer).unwrap().0, version);
        sent.push((query, answer));
    }
    let open = |query: usize, answer: usize| {
        let all = Retrieval::TopK(3);
        both.owner.open(&sent[query].0, &sent[answer].1, &both.directory, all).is_ok()
    };
    assert!(open(0, 0) && open(1, 1) && !open(0, 1) && !open(1, 0));
}

/// Widths that no answer has.
#[test]
fn words_that_no_answer_has_are_refused() {
    let keys = Keys::generate().unwrap();
    let mut both = Both::new(&keys, Mode::Sealed, 8);
    both.add(&random(600, 8, 1), 0, &Expected::rows(600));
    let query =
        both.owner.query(&random(1, 8, 2), &both.directory, QueryOptions::default()).unwrap();
    let (_, header, payload) = wire::open_version(Kind::Query, 2, query.to_bytes()).unwrap();
    let at = 8 + 4 + 1 + 4 + 2;
    let changed = |at: usize, to: u8| {
        let mut payload = payload.to_vec();
        payload[at] = to;
        let mut frame = vec![0; wire::HEADER_LEN];
        frame.extend(payload);
        header.seal_version(2, &mut frame);
        both.server.evaluate(&frame).is_ok()
    };
    let top = usize::from(both.levels[0]);
    for linear in [0, 19, 33, 255] {
        assert!(!changed(at + top, linear));
    }
    assert!((20..=32).all(|linear| changed(at + top, linear)));
}
