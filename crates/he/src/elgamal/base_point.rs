//! Multiples of the base point by scalars and short messages, in constant time.

use std::sync::OnceLock;

use curve25519_dalek::Scalar;
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::traits::Identity;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

use super::MESSAGE_BITS;
use crate::error::Result;
use crate::random;

/// Bits a window: sixteen points are read for each.
const WINDOW: u32 = 4;
const WINDOWS: usize = MESSAGE_BITS.div_ceil(WINDOW) as usize;

/// A uniform scalar.
pub fn random_scalar() -> Result<Zeroizing<Scalar>> {
    let mut bytes = Zeroizing::new([0; 64]);
    random::fill(bytes.as_mut())?;
    Ok(Zeroizing::new(Scalar::from_bytes_mod_order_wide(&bytes)))
}

/// `message · G` for a message of [`MESSAGE_BITS`]: nine additions instead of the 64 of a full
/// scalar.
pub fn message_point(message: i64) -> RistrettoPoint {
    let table = TABLE.get_or_init(windows);
    let shifted = message.wrapping_add(1 << (MESSAGE_BITS - 1)) as u64;
    table.iter().enumerate().fold(RistrettoPoint::identity(), |sum, (at, window)| {
        let digit = (shifted >> (at as u32 * WINDOW)) & ((1 << WINDOW) - 1);
        let mut chosen = window[0];
        for (value, point) in (0u64..).zip(window).skip(1) {
            chosen.conditional_assign(point, value.ct_eq(&digit));
        }
        sum + chosen
    })
}

static TABLE: OnceLock<Windows> = OnceLock::new();

type Windows = Box<[[RistrettoPoint; 1 << WINDOW]; WINDOWS]>;

/// `digit · 2^(4 w) · G` for every window `w`; the first also takes back the 2^(MESSAGE_BITS − 1)
/// that makes messages positive.
fn windows() -> Windows {
    let mut step = RISTRETTO_BASEPOINT_POINT;
    let mut table = Box::new([[RistrettoPoint::identity(); 1 << WINDOW]; WINDOWS]);
    for window in table.iter_mut() {
        for digit in 1..window.len() {
            window[digit] = window[digit - 1] + step;
        }
        step += window[window.len() - 1];
    }
    let offset = RISTRETTO_BASEPOINT_POINT * Scalar::from(1u64 << (MESSAGE_BITS - 1));
    table[0].iter_mut().for_each(|point| *point -= offset);
    table
}
