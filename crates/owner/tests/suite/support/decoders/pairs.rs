//! A pair of encrypted vectors, their score, the server and the owner as valid bytes, and their decoders.

use ciphervec_he_secret::params::Security;
use ciphervec_owner::Error;
use ciphervec_owner::similarity::ckks::{
    ArrayLayout, Client, EncryptOptions, EncryptedArray, Operation, PlainRows, Plan, PlanRequest,
    Role, Server,
};
use std::sync::LazyLock;

/// One key, and what is computed under it.
pub struct Pairs {
    owner: Client,
    pub vectors: Vec<u8>,
    pub scores: Vec<u8>,
    pub server: Vec<u8>,
    pub secret: Vec<u8>,
}

/// The smallest ring, without evaluation keys.
pub static PAIRS: LazyLock<Pairs> =
    LazyLock::new(|| Pairs::try_new().expect("a small pair can be made"));

impl Pairs {
    fn try_new() -> Result<Self, Error> {
        let layout = ArrayLayout::Coefficients;
        let owner = Client::for_plan(&Plan::new(PlanRequest {
            operation: Operation::Dot,
            layout,
            dimension: 3,
            magnitude: 1.0,
            precision_bits: 10,
            plain: false,
            security: Security::Classical128,
        })?)?;
        let rows = PlainRows::new(&[0.5, -0.25, 1.0], 1, 3)?;
        let side = |role| {
            owner.encrypt(&rows, &EncryptOptions { layout, role, ..EncryptOptions::default() })
        };
        let left = side(Role::Left)?;
        let scores = owner.server().dot(&left, &side(Role::Right)?)?;
        Ok(Pairs {
            vectors: left.to_bytes(),
            scores: scores.to_bytes(),
            server: owner.server().to_bytes(),
            secret: owner.to_secret_bytes().to_vec(),
            owner,
        })
    }

    /// An encrypted array, which is then decrypted.
    pub fn read_array(&self, bytes: &[u8]) -> bool {
        EncryptedArray::from_bytes(self.owner.server(), bytes).is_ok_and(|array| {
            let written = array.to_bytes();
            // Fresh ciphertexts come with seeds and are written without them.
            assert!(written == bytes || written.len() > bytes.len());
            if let Ok(numbers) = self.owner.decrypt(&array) {
                assert_eq!(numbers.len(), array.rows() * array.dimension());
            }
            true
        })
    }

    /// What a server gets.
    pub fn read_server(&self, bytes: &[u8]) -> bool {
        Server::from_bytes(bytes).is_ok_and(|server| {
            assert_eq!(server.to_bytes(), bytes);
            true
        })
    }

    /// An owner, as a key file holds it.
    pub fn read_owner(&self, bytes: &[u8]) -> bool {
        Client::from_secret_bytes(bytes).is_ok_and(|owner| {
            assert_eq!(*owner.to_secret_bytes(), *bytes);
            true
        })
    }
}
