//! What the security of an index rests on: bits, the table that they come from, the assumption and the leakage.

use crate::index::form::{Additive, Form, Rows};
use ciphervec_he::lattice::compact::Width;
use ciphervec_he::lattice::ring;
use ciphervec_he::params::{self, Estimate, Security};

const TABLE: &str = "community guidelines 2024, IACR ePrint 2024/463, Table 5.2";
const SEALED_INDEX_LEAKAGE: &str =
    "the queries; sizes, times, segments touched, equality of filterable fields";

/// What an index rests on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecurityStatement {
    /// Classical security in bits, 0 for mode `open`.
    pub bits: u32,
    /// Ring degree; 0 under the additively homomorphic schemes.
    pub degree: usize,
    /// log2 of the widest modulus used, special primes included; of n, or of ElGamal's field.
    pub log_modulus: u32,
    /// The table's limit at this degree; 0 where the table is one of least lengths.
    pub limit: u32,
    /// The source of the limit.
    pub table: &'static str,
    /// The assumptions.
    pub assumption: &'static str,
    /// Whether the assumption is believed to hold against quantum computers, and the parameters are within the table's column
    /// for them where it has one.
    pub post_quantum: bool,
    /// What attacks on the lattice cost, by model; nothing where there is no lattice.
    pub estimate: Option<Estimate>,
    /// What the server learns.
    pub leakage: &'static str,
}

impl SecurityStatement {
    /// That of a form.
    pub(crate) fn of(form: &Form) -> Self {
        match form {
            Form::Plain => SecurityStatement {
                bits: 0,
                assumption: "none: nothing is encrypted",
                post_quantum: false,
                ..lattice(0, 0, "everything")
            },
            Form::Compact(width) => compact(*width),
            Form::Ring(rows) => ring(*rows),
            Form::Additive(chosen) => under(chosen),
        }
    }
}

/// `log_modulus` bits at `degree`, held against the guidelines' table.
fn lattice(degree: usize, log_modulus: u32, leakage: &'static str) -> SecurityStatement {
    let limit = |column| params::max_log_modulus(degree, column);
    SecurityStatement {
        bits: 128,
        degree,
        log_modulus,
        limit: limit(Security::Classical128).unwrap_or(0),
        table: TABLE,
        assumption: "ring LWE, uniform ternary secret, sigma 3.2",
        post_quantum: limit(Security::Quantum128).is_some_and(|limit| log_modulus <= limit),
        estimate: params::estimate(degree, log_modulus),
        leakage,
    }
}

fn compact(width: Width) -> SecurityStatement {
    lattice(width.degree(), width.ciphertext_modulus_bits(), SEALED_INDEX_LEAKAGE)
}

fn ring(rows: Rows) -> SecurityStatement {
    let leakage = match rows {
        Rows::Plain => {
            "the index; sizes and times. No database privacy: who may ask can reconstruct the index"
        }
        Rows::Encrypted => "sizes, times, segments touched, equality of filterable fields",
    };
    SecurityStatement {
        assumption: "ring LWE, uniform ternary secret, sigma 3.2; circular security for the Galois keys",
        ..lattice(ring::DEGREE, 2 * ring::PRIME_BITS, leakage)
    }
}

fn under(chosen: &Additive) -> SecurityStatement {
    let bits = chosen.bits().or(chosen.scheme().field_bits()).unwrap_or(0);
    let lattice = lattice(0, bits, SEALED_INDEX_LEAKAGE);
    match chosen.scheme().key_security(bits) {
        Some(says) => SecurityStatement {
            bits: says.bits,
            table: says.table,
            assumption: says.assumption,
            post_quantum: says.post_quantum,
            ..lattice
        },
        None => SecurityStatement { bits: 0, ..lattice },
    }
}
