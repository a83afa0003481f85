//! Both halves of a small index with a valid object of every kind that travels between them, and their decoders.

use ciphervec_arith::AlignedBytes;
use ciphervec_he_secret::lattice::ring::{EvaluationKeys, Ring};
use ciphervec_owner::search::{
    AnswerFormat, Owner, Query, QueryOptions, Retrieval, SegmentDirectory, ServerIndex,
};
use ciphervec_owner::{Id, IndexSpec, Keys, Metric, Mode, Precision, Scheme};
use std::sync::{LazyLock, Mutex};

const DIMENSION: u32 = 5;
const ROWS: usize = 3;

/// Both halves of one index, its one segment, and one exchange about it.
pub struct Halves {
    spec: IndexSpec,
    owner: Owner,
    directory: SegmentDirectory,
    question: Query,
    holding: ServerIndex,
    /// Holds the evaluation keys and no segment.
    empty: Mutex<ServerIndex>,
    pub segment: Vec<u8>,
    pub query: Vec<u8>,
    /// A query that names the segment.
    pub routed_query: Vec<u8>,
    pub response: Vec<u8>,
    pub tokens: Option<Tokens>,
    pub evaluation_keys: Option<Vec<u8>>,
}

/// An exchange in which half of the answer was fetched ahead, in the modes that know such.
pub struct Tokens {
    question: Query,
    pub request: Vec<u8>,
    pub ahead: Vec<u8>,
    pub query: Vec<u8>,
    pub online: Vec<u8>,
}

impl Tokens {
    fn new(
        owner: &Owner,
        server: &ServerIndex,
        directory: &SegmentDirectory,
        row: &[f32],
    ) -> ciphervec_owner::Result<Self> {
        let format = AnswerFormat::Short;
        let request = owner.request_tokens(1, directory, 0, format)?;
        let bytes = request.to_bytes().to_vec();
        let ahead = server.evaluate(&bytes)?.bytes;
        let tokens = owner.read_tokens(request, &ahead, directory)?;
        let question = owner.query(
            row,
            directory,
            QueryOptions { format, tokens: Some(tokens), ..QueryOptions::default() },
        )?;
        let query = question.to_bytes().to_vec();
        let online = server.evaluate(&query)?.bytes;
        Ok(Tokens { question, request: bytes, ahead, query, online })
    }
}

/// The four trust modes; `sealed-index` in its standard precision.
pub static OPEN: LazyLock<Halves> = LazyLock::new(|| Halves::new(Mode::Open));
pub static SEALED_INDEX: LazyLock<Halves> = LazyLock::new(|| Halves::new(Mode::SealedIndex));
pub static SEALED_QUERY: LazyLock<Halves> = LazyLock::new(|| Halves::new(Mode::SealedQuery));
pub static SEALED: LazyLock<Halves> = LazyLock::new(|| Halves::new(Mode::Sealed));
/// Mode `sealed-index` under an additively homomorphic scheme, the one with short keys.
pub static ELGAMAL_INDEX: LazyLock<Halves> = LazyLock::new(|| {
    Halves::of(Mode::SealedIndex, Scheme::ElGamal).expect("a small index can be made")
});
static RING: LazyLock<Ring> = LazyLock::new(|| Ring::new().expect("the parameters are in order"));

impl Halves {
    fn new(mode: Mode) -> Self {
        Self::of(mode, Scheme::Lattice).expect("a small index can be made")
    }

    fn of(mode: Mode, scheme: Scheme) -> ciphervec_owner::Result<Self> {
        let precision = if scheme.is_additive() { Precision::Small } else { Precision::Standard };
        let spec = IndexSpec::new("faces", DIMENSION, Metric::L2, mode, precision)?
            .with_scheme(scheme, None)?;
        let keys = Keys::from_master([7; 32]);
        let owner = Owner::new(&keys, spec.clone())?;
        if scheme.is_additive() {
            owner.generate_key_pair()?;
        }
        let rows: Vec<f32> = (0..ROWS * DIMENSION as usize).map(|at| (at as f32).sin()).collect();
        let ids: Vec<Id> = (0..ROWS as i64).map(Id::from).collect();
        let sealed = owner.seal(&rows, &ids)?;
        let mut directory = SegmentDirectory::new();
        directory.add(&owner, sealed.id, &sealed.sidecar, &[])?;
        let (mut holding, mut empty) =
            (ServerIndex::new(spec.clone())?, ServerIndex::new(spec.clone())?);
        let evaluation_keys = if scheme.is_additive() {
            Some(owner.public_key()?)
        } else {
            keys.evaluation(&spec, 0)?.map(|keys| keys.to_bytes())
        };
        for server in [&mut holding, &mut empty] {
            evaluation_keys
                .iter()
                .try_for_each(|keys| server.set_evaluation_keys(keys).map(drop))?;
        }
        let segment = sealed.segment.to_vec();
        holding.add(sealed.segment)?;
        let question =
            owner.query(&rows[..DIMENSION as usize], &directory, QueryOptions::default())?;
        let query = question.to_bytes().to_vec();
        let named = Some(&[sealed.id][..]);
        let routed = owner.query(
            &rows[..DIMENSION as usize],
            &directory,
            QueryOptions { segments: named, ..QueryOptions::default() },
        )?;
        let routed_query = routed.to_bytes().to_vec();
        let response = holding.evaluate(&query)?.bytes;
        let tokens = if mode.encrypts_queries() {
            Some(Tokens::new(&owner, &holding, &directory, &rows[..DIMENSION as usize])?)
        } else {
            None
        };
        let empty = Mutex::new(empty);
        Ok(Self {
            spec,
            owner,
            directory,
            question,
            holding,
            empty,
            segment,
            query,
            routed_query,
            response,
            tokens,
            evaluation_keys,
        })
    }

    /// A segment, as a server takes it in; one that is taken in can be searched.
    pub fn read_segment(&self, bytes: &[u8]) -> bool {
        let mut server = self.empty.lock().expect("no decoder panicked");
        server.add(AlignedBytes::from_slice(bytes)).is_ok_and(|id| {
            let held = server.segments().next().expect("just added");
            assert_eq!(*held.to_bytes(&self.spec).expect("of this index"), *bytes);
            // A query that reaches too few levels is refused; nothing may panic.
            if let Ok(answer) = server.evaluate(&self.query) {
                assert!(!answer.bytes.is_empty());
            }
            assert!(server.remove(id));
            true
        })
    }

    /// A query, as a server reads it.
    pub fn read_query(&self, bytes: &[u8]) -> bool {
        self.holding.evaluate(bytes).is_ok()
    }

    /// A response, as its owner reads it.
    pub fn read_response(&self, bytes: &[u8]) -> bool {
        let opened = self.owner.open(&self.question, bytes, &self.directory, Retrieval::TopK(ROWS));
        opened.is_ok_and(|opened| {
            assert!(opened.hits.len() == 1 && opened.hits[0].len() <= ROWS);
            true
        })
    }

    /// Half of an answer that was asked for ahead, as its owner makes a token of it.
    pub fn read_ahead(&self, bytes: &[u8]) -> bool {
        let request = self.owner.request_tokens(1, &self.directory, 0, AnswerFormat::Short);
        let request = request.expect("a mode with tokens");
        let tokens = self.owner.read_tokens(request, bytes, &self.directory);
        tokens.is_ok_and(|tokens| tokens.len() == 1)
    }

    /// The other half, as its owner completes the answer with it, and opens that.
    pub fn read_online(&self, bytes: &[u8]) -> bool {
        let tokens = self.tokens.as_ref().expect("a mode with tokens");
        self.owner.complete(&tokens.question, bytes).is_ok_and(|whole| {
            let all = Retrieval::TopK(ROWS);
            self.owner.open(&tokens.question, &whole, &self.directory, all).is_ok()
        })
    }

    /// Evaluation keys, as a server reads them.
    pub fn read_evaluation_keys(&self, bytes: &[u8]) -> bool {
        let dimension = self.spec.dimension();
        EvaluationKeys::from_bytes(&RING, bytes, dimension).is_ok_and(|keys| {
            assert_eq!(keys.to_bytes(), bytes);
            true
        })
    }
}
