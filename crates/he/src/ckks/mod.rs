//! Leveled RNS-CKKS: approximate arithmetic on encrypted real or complex numbers.
//!
//! Numbers are encoded by the canonical embedding and encrypted; the server adds, multiplies and
//! rotates; the owner decrypts numbers, each off by an error that the ciphertext estimates.
//! `docs/ckks.md` derives the formulas that the comments cite.

mod align;
mod approximate;
mod base_switch;
mod bilinear;
mod bootstrap;
mod buffer_pool;
mod calibration;
mod ciphertext;
mod depth;
mod embedding;
mod entropy;
mod evaluate;
mod expected;
mod explain;
mod fft;
mod forecast;
mod half_ring;
mod inverse;
mod key_switch;
mod keys;
mod lazy_switch;
mod linear;
mod minimax;
mod modulus_chain;
mod noise;
mod operations;
mod params;
mod pcmm;
mod plaintext;
mod poly;
mod polynomial;
mod polynomial_evaluation;
mod roots_of_unity;
mod serialize;
mod sign;
mod sign_search;
mod small_polynomial;
mod spec;
mod tail;
mod truncated;
mod widths;
mod work;

/// What secret keys are made of in `ciphervec-he-secret`, and what they encrypt and decrypt with: no part of the
/// interface. Nothing here knows a secret.
#[doc(hidden)]
pub mod inner {
    pub use super::base_switch::{BaseSwitchKey, tables};
    #[cfg(feature = "hazmat")]
    pub use super::bootstrap::transforms;
    pub use super::bootstrap::{Encapsulation, WEIGHT};
    pub use super::ciphertext::{Meta, mask};
    pub use super::keys::KeySwitchKey;
    pub use super::poly::each;
    pub use super::serialize::{open, pack_bits};
    pub use super::small_polynomial::{SecretPoly, SmallPolynomial};
    pub use super::truncated::round_to_bits;
}

pub use bilinear::BilinearForm;
pub use bootstrap::{
    BootstrapPlan, BootstrapSpec, Bootstrapper, BootstrappingKeys, Components, Exponential,
    ExponentialPlan, ExponentialSpec, LookupTable, TablePlan,
};
pub use calibration::Calibration;
pub use ciphertext::{Ciphertext, SeededCiphertext};
pub use embedding::{Embedding, RealEmbedding};
pub use entropy::Entropy;
pub use evaluate::{Decomposed, Evaluator};
pub use expected::Expected;
pub use forecast::{EncryptionKey, Forecast, Traced, TracedForecast, Tracing};
pub use half_ring::{CompactCiphertexts, HalfRing, RingSwitchKey};
pub use inverse::{Inverse, InverseSquareRoot};
pub use keys::{EvaluationKeys, KeyPlan, PublicKey};
pub use linear::LinearTransform;
pub use noise::Noise;
pub use num_complex::Complex64 as Complex;
pub use params::Params;
pub use pcmm::PlainMatrix;
pub use plaintext::{Encoding, Plaintext};
pub use poly::{Coefficient, Ntt, Poly};
pub use polynomial::{Basis, Polynomial};
pub use sign::Sign;
pub use spec::{ParamsSpec, Ring};
pub use tail::{Deviation, deviations};
pub use truncated::Truncation;
pub use widths::Stage;
pub use work::{LevelWork, Work};
