//! Histogram scheme: sums of encrypted counts with plain weights (`docs/lookup.md`).
//!
//! LWE over `Z[X]/(X^N + 1)` modulo a 50-bit prime q. Counts sit in coefficients; polynomial m of a
//! document is masked by the public a_m times the document's own secret s, and switched down to a
//! power of two before the counts are added:
//!
//! ```text
//! b_m = round(2^W/q · (a_m s + e_m  mod q)) + x_m   mod 2^W
//! ```
//!
//! A weighted sum of coefficients is one number, and its mask is the inner product of s with a
//! vector that depends on the masks and the weights alone: `Σ_i w_i (a s)_i = Σ_j h_j s_j`,
//! `h = a(X) w(1/X)` read backwards. All documents share it, so a server makes this *hint* once,
//! and is left with integer weights times words.
//!
//! N is 2,048 and W is 32, 40 or 48: 4, 5 or 6 bytes a count. The secret is ternary and uniform, fresh for every document; the
//! masks are one for all documents of a client. Reusing them under fresh secrets is learning with errors over rings in its matrix
//! form. e is Gaussian with σ = 3.2. The hint takes 8 KB an output, and is sent once for all documents and queries of a client.

mod hint;
mod params;
mod scan;

pub use hint::{Hint, Masks};
pub use params::{DEGREE, HINT_BITS, Histogram, MODULUS_BITS, WORD_BYTES};
