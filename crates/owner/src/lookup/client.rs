//! The client of lookups: it holds the keys, encrypts indices and decrypts what was looked up.

use super::documents::Documents;
use super::histogram::client::HistogramClient;
use super::serialize::{expect_params, expect_scheme, frame};
use super::spec::Instance;
use super::tokens::client::TokensClient;
use super::{Recipe, Spec};
use crate::error::Result;
use ciphervec_he_secret::keys::MasterKey;
use ciphervec_he_secret::wire::{self, KeyId, Kind, Reader};
use zeroize::Zeroizing;

/// Who asks: a key of 32 bytes for one table, from which everything secret is derived.
pub struct Client {
    spec: Spec,
    id: [u8; 16],
    master: MasterKey,
    strategy: StrategyClient,
}

/// What the strategy encrypts with.
enum StrategyClient {
    Histogram(Box<HistogramClient>),
    Tokens(Box<TokensClient>),
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Client({}, redacted)", self.master.key_id())
    }
}

impl Client {
    /// A client with a fresh key for the tables that a server described.
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::Randomness`], and a description whose strategy does not fit its
    /// tables.
    pub fn generate(spec: Spec) -> Result<Self> {
        Self::new(spec, MasterKey::generate()?)
    }

    pub(super) fn new(spec: Spec, master: MasterKey) -> Result<Self> {
        let instance = Instance::new(spec.options(), (spec.tables(), spec.rows(), spec.columns()))?;
        Ok(Self::of(spec, master, instance))
    }

    /// The same of what is made already.
    pub(super) fn of(spec: Spec, master: MasterKey, instance: Instance) -> Self {
        let id = spec.id();
        let strategy = match instance {
            Instance::Histogram(scheme) => StrategyClient::Histogram(Box::new(
                HistogramClient::new(&spec, &id, &master, scheme),
            )),
            Instance::Tokens(recipe) => {
                StrategyClient::Tokens(Box::new(TokensClient::new(&id, &master, recipe)))
            }
        };
        Client { spec, id, master, strategy }
    }

    /// What is looked up in.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// How indices are written, in strategies that look up token by token.
    pub fn recipe(&self) -> Option<&Recipe> {
        match &self.strategy {
            StrategyClient::Tokens(tokens) => Some(tokens.recipe()),
            StrategyClient::Histogram(_) => None,
        }
    }

    pub(super) fn master(&self) -> &MasterKey {
        &self.master
    }

    /// The public name of the key.
    pub fn key_id(&self) -> KeyId {
        self.master.key_id()
    }

    /// Sixteen public bytes that name key and tables.
    pub fn label(&self) -> [u8; 16] {
        let mut label = self.id;
        label[..8].copy_from_slice(&self.master.key_id().0);
        label
    }

    /// What the server needs before it can answer: evaluation keys, made anew at each call; `None`
    /// where a strategy needs none.
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::Randomness`].
    pub fn keys(&self) -> Result<Option<Vec<u8>>> {
        match &self.strategy {
            StrategyClient::Tokens(tokens) => tokens.keys(&self.spec),
            StrategyClient::Histogram(_) => Ok(None),
        }
    }

    /// Documents, encrypted: the bytes of a query.
    ///
    /// # Errors
    /// [`Error::Lookup`](crate::Error::Lookup) for indices that the tables do not have or documents
    /// over the limit; [`ciphervec_he_secret::Error::Randomness`].
    pub fn query(&self, documents: &Documents<'_>) -> Result<Vec<u8>> {
        documents.check(&self.spec)?;
        match &self.strategy {
            StrategyClient::Histogram(histogram) => {
                histogram.query(&self.spec, &self.master, documents)
            }
            StrategyClient::Tokens(tokens) => tokens.query(&self.spec, self.key_id(), documents),
        }
    }

    /// What an answer says: `d` numbers a document, or a token where nothing is pooled, each off by
    /// at most [`Spec::error_bound`].
    ///
    /// For the one who asked alone: what is decrypted exactly and shown to others gives keys away
    /// (Li & Micciancio 2021).
    ///
    /// # Errors
    /// Damaged or malformed bytes; an answer for another key, another table or other settings;
    /// [`Error::Lookup`](crate::Error::Lookup) for one without a hint where none was kept.
    pub fn decode(&self, answer: &[u8]) -> Result<Vec<f64>> {
        match &self.strategy {
            StrategyClient::Histogram(histogram) => {
                histogram.decode(&self.spec, &self.master, answer)
            }
            StrategyClient::Tokens(tokens) => tokens.decode(&self.spec, self.key_id(), answer),
        }
    }

    /// The client, not encrypted, for a key file: `32 bytes | description's frame`.
    pub fn to_secret_bytes(&self) -> Zeroizing<Vec<u8>> {
        let spec = self.spec().to_bytes();
        // Room for all of it from the start: growing would leave a copy of the secret behind.
        let mut payload = Zeroizing::new(Vec::with_capacity(32 + spec.len()));
        payload.extend_from_slice(self.master().expose());
        payload.extend_from_slice(&spec);
        let key = self.master().key_id();
        Zeroizing::new(frame(Kind::SecretKey, self.spec().params, key, &payload))
    }

    /// Reads what [`Self::to_secret_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged bytes, and the secret key of another scheme.
    pub fn from_secret_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::SecretKey, bytes)?;
        let mut reader = Reader::new("the key of a lookup", payload);
        expect_scheme(&header, &reader)?;
        let secret = Zeroizing::new(reader.array()?);
        let spec = Spec::from_bytes(reader.take(reader.remaining())?)?;
        expect_params("the key of a lookup", &spec, &header)?;
        let master = MasterKey::from_bytes(*secret);
        if master.key_id() != header.key {
            let (expected, actual) = (header.key, master.key_id());
            return Err(ciphervec_he_secret::Error::WrongKey {
                what: "the key of a lookup",
                expected,
                actual,
            }
            .into());
        }
        Self::new(spec, master)
    }
}
