//! Scores plain probes under an additively homomorphic scheme, for the server: scores are re-randomised ciphertexts.

use super::gallery::{Gallery, PublicKey};
use super::layout::similarity;
use super::schemes::read_public_key;
use crate::error::{Error, Result};
use crate::index::form::Additive;
use crate::index::spec::IndexSpec;
use crate::search::entry::SegmentReader;
use crate::search::form::batch::{self, Pending, Scan};
use crate::search::form::contract::{Evaluation, Request, ServerHalf, expect_key};
use crate::search::segment::{HEADROOM, Segment, SegmentHead};
use crate::similarity::additive::{Layout, Probes};
use ciphervec_arith::AlignedBytes;
use ciphervec_he::wire::{KeyId, Kind, Reader};
use std::sync::Arc;

#[derive(Clone)]
pub struct AdditiveServer {
    spec: IndexSpec,
    chosen: Additive,
    public: Option<Arc<dyn PublicKey>>,
}

impl AdditiveServer {
    pub fn new(spec: IndexSpec, chosen: Additive) -> Self {
        AdditiveServer { spec, chosen, public: None }
    }

    fn public(&self) -> Result<&dyn PublicKey> {
        self.public.as_deref().ok_or(Error::NoPublicKey)
    }
}

impl ServerHalf for AdditiveServer {
    /// The public key, which comes before any segment and has no epoch.
    fn with_keys(&self, bytes: &[u8], held: Option<KeyId>) -> Result<(Arc<dyn ServerHalf>, u32)> {
        let public = read_public_key(&self.chosen, bytes)?;
        if let Some(held) = held {
            expect_key(Kind::PublicKey.as_str(), held, public.key_id())?;
        }
        Ok((Arc::new(AdditiveServer { public: Some(public.into()), ..self.clone() }), 0))
    }

    fn read_rows(&self, head: SegmentHead, bytes: AlignedBytes) -> Result<Segment> {
        let public = self.public()?;
        expect_key(Kind::Segment.as_str(), public.key_id(), head.key)?;
        let vectors = public.read(&self.spec, head.rows, &bytes[HEADROOM..])?;
        Ok(Segment::of_parsed(head, bytes.len(), Box::new(vectors)))
    }

    fn score(
        &self,
        requests: Vec<Request<'_>>,
        rows: &dyn SegmentReader,
    ) -> Result<Vec<Result<Evaluation>>> {
        batch::scan(self, &self.spec, requests, rows)
    }
}

impl Scan for AdditiveServer {
    type Queries = Probes;

    fn read(&self, count: u32, key: KeyId, mut body: Reader<'_>) -> Result<Probes> {
        expect_key(Kind::Query.as_str(), self.public()?.key_id(), key)?;
        let probes = Probes::from_bytes(body.take(body.remaining())?)?;
        // Here, where a request is refused alone: in the pass that it shares with others it would fail them all.
        if probes.len() != count as usize || !probes.fit(&similarity(&self.spec, Layout::Elements)?)
        {
            let detail = format!("{count} probes as the index describes them expected");
            return Err(body.error(detail).into());
        }
        Ok(probes)
    }

    fn scan(&self, segment: &Segment, asked: &mut [&mut Pending<'_, Probes>]) -> Result<()> {
        let gallery: &Gallery = segment.parsed().ok_or(Error::NoPublicKey)?;
        for asked in asked {
            let (probes, body) = asked.parts();
            let scores = gallery.score(probes)?;
            body.extend_from_slice(&(scores.len() as u64).to_le_bytes());
            body.extend_from_slice(&scores);
        }
        Ok(())
    }

    fn response_key(&self) -> KeyId {
        self.public.as_ref().map_or(KeyId::default(), |public| public.key_id())
    }
}
