//! The client's half. Indices enter, queries leave; answers enter, what was looked up leaves. Holds the keys.

use super::documents::Documents;
use super::recipe::Recipe;
use super::spec::{Method, Spec};
use super::{counting::Counting, tokens::Tokens};
use crate::error::Result;
use ciphervec_he::keys::MasterKey;
use ciphervec_he::wire::KeyId;

/// Who asks: a key of 32 bytes for one table, from which everything secret is derived.
pub struct Client {
    spec: Spec,
    id: [u8; 16],
    master: MasterKey,
    way: Way,
}

/// What the strategy encrypts with.
enum Way {
    Histogram(Box<Counting>),
    Tokens(Box<Tokens>),
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
    /// [`ciphervec_he::Error::Randomness`], and a description whose strategy does not fit its tables.
    pub fn generate(spec: Spec) -> Result<Self> {
        Self::new(spec, MasterKey::generate()?)
    }

    pub(super) fn new(spec: Spec, master: MasterKey) -> Result<Self> {
        let id = spec.id();
        let way = match Method::new(&spec.options, spec.shape)? {
            Method::Histogram(scheme) => {
                Way::Histogram(Box::new(Counting::new(&spec, &id, &master, scheme)))
            }
            Method::Tokens(recipe) => Way::Tokens(Box::new(Tokens::new(&id, &master, recipe))),
        };
        Ok(Client { spec, id, master, way })
    }

    /// What is looked up in.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// How indices are written, in strategies that look up token by token.
    pub fn recipe(&self) -> Option<&Recipe> {
        match &self.way {
            Way::Tokens(tokens) => Some(tokens.recipe()),
            Way::Histogram(_) => None,
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

    /// What the server needs before it can answer: evaluation keys, made anew at each call; `None` where a strategy needs none.
    ///
    /// # Errors
    /// [`ciphervec_he::Error::Randomness`].
    pub fn keys(&self) -> Result<Option<Vec<u8>>> {
        match &self.way {
            Way::Tokens(tokens) => tokens.keys(),
            Way::Histogram(_) => Ok(None),
        }
    }

    /// Documents, encrypted: the bytes of a query.
    ///
    /// # Errors
    /// [`Error::Lookup`](crate::Error::Lookup) for indices that the tables do not have or documents over the limit;
    /// [`ciphervec_he::Error::Randomness`].
    pub fn query(&self, documents: &Documents<'_>) -> Result<Vec<u8>> {
        documents.check(&self.spec)?;
        match &self.way {
            Way::Histogram(counting) => counting.query(&self.spec, &self.master, documents),
            Way::Tokens(tokens) => tokens.query(&self.spec, self.key_id(), documents),
        }
    }

    /// What an answer says: `d` numbers a document, or a token where nothing is pooled, each off by at most
    /// [`Spec::error_bound`].
    ///
    /// For the one who asked alone: what is decrypted exactly and shown to others gives keys away (Li & Micciancio 2021).
    ///
    /// # Errors
    /// Damaged or malformed bytes; an answer for another key, another table or other settings;
    /// [`Error::Lookup`](crate::Error::Lookup) for one without a hint where none was kept.
    pub fn decode(&self, answer: &[u8]) -> Result<Vec<f64>> {
        match &self.way {
            Way::Histogram(counting) => counting.decode(&self.spec, &self.master, answer),
            Way::Tokens(tokens) => tokens.decode(&self.spec, self.key_id(), answer),
        }
    }
}

/// Refuses an answer to another key.
pub(super) fn expect_key(expected: KeyId, actual: KeyId) -> Result<()> {
    if expected == actual {
        return Ok(());
    }
    Err(ciphervec_he::Error::WrongKey { what: "the answer", expected, actual }.into())
}
