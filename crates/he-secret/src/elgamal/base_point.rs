//! Messages as scalars.

use curve25519_dalek::Scalar;
use zeroize::Zeroizing;

/// A message as a scalar, in constant time.
pub fn scalar(message: i64) -> Zeroizing<Scalar> {
    // m = (m + 2^63) − 2^63.
    let shifted = Zeroizing::new(Scalar::from((message as u64) ^ (1 << 63)));
    Zeroizing::new(*shifted - Scalar::from(1u64 << 63))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elgamal::MESSAGE_BITS;
    use crate::elgamal::inner::message_point;
    use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;

    #[test]
    fn short_messages_agree_with_full_scalars() {
        let bound = (1i64 << (MESSAGE_BITS - 1)) - 1;
        for message in [0, 1, -1, 15, 16, -16, 0x1234_5678, -0x1234_5678, bound, -bound] {
            let full = RISTRETTO_BASEPOINT_POINT * *scalar(message);
            assert_eq!(message_point(message), full, "{message}");
        }
        for message in [i64::MAX, i64::MIN, -1] {
            let magnitude = Scalar::from(message.unsigned_abs());
            assert_eq!(*scalar(message), if message < 0 { -magnitude } else { magnitude });
        }
    }
}
