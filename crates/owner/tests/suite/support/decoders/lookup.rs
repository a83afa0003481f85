//! The halves of a private lookup, by counts and token by token, with everything that they send.

use ciphervec_owner::lookup::{Client, Documents, Options, Pooling, Server, Spec, Strategy, Table};
use std::error::Error;
use std::sync::LazyLock;

/// A server, a client, and what travels.
pub struct Lookup {
    server: Server,
    client: Client,
    pub description: Vec<u8>,
    pub tables: Vec<u8>,
    pub secret: Vec<u8>,
    pub query: Vec<u8>,
    pub answer: Vec<u8>,
}

/// Two tables of three rows.
pub static LOOKUP: LazyLock<Lookup> = LazyLock::new(|| {
    Lookup::try_new(Options { limit: 4, ..Options::default() }).expect("a small lookup can be made")
});

/// The same token by token.
pub static LOOKUP_TOKENS: LazyLock<Lookup> = LazyLock::new(|| {
    let options = Options {
        strategy: Strategy::OneHot,
        pooling: Pooling::None,
        precision_bits: 8,
        ..Options::default()
    };
    Lookup::try_new(options).expect("a small lookup can be made")
});

impl Lookup {
    fn try_new(options: Options) -> Result<Self, Box<dyn Error>> {
        let table = Table::new(&[0.5, -1.0, 0.25, 2.0, 0.0, 1.0], (2, 3, 1))?;
        let server = Server::new(table, options)?;
        let client = Client::generate(server.spec().clone())?;
        let query = client.query(&Documents::new(&[0, 1, 2, 2], 2, &[0, 1, 2])?)?;
        let answer = server.answer(&query)?;
        Ok(Lookup {
            description: server.spec().to_bytes(),
            tables: server.to_bytes(),
            secret: client.to_secret_bytes().to_vec(),
            query,
            answer,
            server,
            client,
        })
    }

    /// What clients get.
    pub fn read_description(&self, bytes: &[u8]) -> bool {
        Spec::from_bytes(bytes).is_ok_and(|spec| {
            assert_eq!(spec.to_bytes(), bytes);
            true
        })
    }

    /// What a server keeps.
    pub fn read_tables(&self, bytes: &[u8]) -> bool {
        Server::from_bytes(bytes).is_ok_and(|server| {
            assert_eq!(server.to_bytes(), bytes);
            true
        })
    }

    /// A client, as a key file holds it.
    pub fn read_secret(&self, bytes: &[u8]) -> bool {
        Client::from_secret_bytes(bytes).is_ok_and(|client| {
            assert_eq!(*client.to_secret_bytes(), *bytes);
            true
        })
    }

    /// A query, which is answered.
    pub fn read_query(&self, bytes: &[u8]) -> bool {
        self.server.answer(bytes).is_ok_and(|answer| {
            assert!(!answer.is_empty());
            true
        })
    }

    /// An answer, which is decoded.
    pub fn read_answer(&self, bytes: &[u8]) -> bool {
        self.client.decode(bytes).is_ok_and(|numbers| {
            assert!(numbers.iter().all(|number| number.is_finite()));
            true
        })
    }
}
