//! What a replica fetches rows with in private: a session, what its server offers, and what failed.

use std::collections::HashMap;

use ciphervec_owner::KeyId;
use ciphervec_owner::fetch::FetchSession;

use crate::belief::fetch_book::FetchBook;
use crate::store::FetchOffer;

pub struct Fetches {
    pub book: FetchBook,
    /// Under which keys, and of which process: it serves so many queries.
    pub session: Option<((KeyId, u64), FetchSession)>,
    /// By blob.
    pub offers: HashMap<&'static str, FetchOffer>,
}

impl Fetches {
    pub fn new(book: FetchBook) -> Self {
        Fetches { book, session: None, offers: HashMap::new() }
    }
}
