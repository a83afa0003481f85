//! Leveled RNS-CKKS: approximate arithmetic on encrypted vectors of real or complex numbers.
//!
//! Numbers enter at the owner, are encoded by the canonical embedding and encrypted; the server adds, multiplies and rotates;
//! numbers leave at the owner, each off by an error that the ciphertext estimates. `docs/ckks.md` derives the formulas that
//! the comments cite.

mod approximate;
mod bilinear;
mod bytes;
mod chain;
mod ciphertext;
mod circle;
mod depth;
mod embedding;
mod entropy;
mod evaluate;
mod fft;
mod inverse;
mod keys;
mod keyswitch;
mod linear;
mod noise;
mod params;
mod pcmm;
mod plaintext;
mod poly;
mod polynomial;
#[cfg(feature = "client")]
mod publish;
mod small;
mod spec;
mod words;

pub use bilinear::Form;
pub use ciphertext::{Ciphertext, SeededCiphertext};
pub use embedding::{Embedding, RealEmbedding};
pub use entropy::Entropy;
pub use evaluate::{Decomposed, Evaluator};
pub use inverse::{Inverse, InverseSquareRoot};
#[cfg(feature = "client")]
pub use keys::SecretKey;
pub use keys::{EvaluationKeys, KeyPlan, PublicKey};
pub use linear::LinearTransform;
pub use noise::Noise;
pub use num_complex::Complex64 as Complex;
pub use params::Params;
pub use pcmm::PlainMatrix;
pub use plaintext::{Encoding, Plaintext};
pub use poly::{Coefficient, Ntt, Poly};
pub use polynomial::{Basis, Polynomial};
#[cfg(feature = "client")]
pub use publish::{Budget, PublishPolicy, Published};
pub use spec::{ParamsSpec, Ring};
