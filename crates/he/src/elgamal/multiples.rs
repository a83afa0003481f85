//! Multiples of a point, in constant time: by a table, but in WebAssembly, where that of the base point alone is 30 kB in every page.

use curve25519_dalek::Scalar;
use curve25519_dalek::ristretto::RistrettoPoint;

#[cfg(not(target_arch = "wasm32"))]
use curve25519_dalek::ristretto::RistrettoBasepointTable as Multiples;

/// What multiples of one point are made of.
#[cfg(target_arch = "wasm32")]
type Multiples = RistrettoPoint;

/// A point that is multiplied often.
pub struct Multiplied(Multiples);

impl Multiplied {
    /// This point.
    pub fn new(point: &RistrettoPoint) -> Self {
        #[cfg(not(target_arch = "wasm32"))]
        let multiples = Multiples::create(point);
        #[cfg(target_arch = "wasm32")]
        let multiples = *point;
        Self(multiples)
    }

    /// So many times the point.
    pub fn times(&self, scalar: &Scalar) -> RistrettoPoint {
        &self.0 * scalar
    }
}
