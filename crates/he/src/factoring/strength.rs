//! Security of a modulus by its length, and the lengths that keys may have.

use crate::additive::SecurityStatement;
use crate::error::{Error, Result};

/// The length of a modulus unless another is asked for: 128 bits of security.
pub const DEFAULT_BITS: u32 = 3072;
/// The shortest modulus of a key that is not `insecure_`: 112 bits of security.
pub const MIN_BITS: u32 = 2048;
/// The longest modulus that keys are generated for.
pub const MAX_BITS: u32 = 8192;
/// The shortest modulus of an `insecure_` key.
const MIN_INSECURE_BITS: u32 = 256;

/// Rows of the table: length of the modulus, bits of security.
const TABLE: [(u32, u32); 4] = [(7680, 192), (3072, 128), (2048, 112), (1024, 80)];

/// Bits of security of a modulus of `bits` bits; 0 below the table.
pub(crate) fn security_bits(bits: u32) -> u32 {
    TABLE.iter().find(|(length, _)| bits >= *length).map_or(0, |(_, security)| *security)
}

/// Length of the prime orders of a subgroup: twice the bits of security, and 256 at least for keys
/// to be used.
pub fn order_bits(bits: u32) -> u32 {
    match security_bits(bits) {
        0 => bits / 8,
        80 => 160,
        security => (2 * security).max(256),
    }
}

/// What a key with a modulus of `bits` bits rests on.
pub(crate) fn statement(bits: u32, assumption: &'static str) -> SecurityStatement {
    SecurityStatement {
        bits: security_bits(bits),
        table: "NIST SP 800-57 part 1 revision 5, table 2: 1024, 2048, 3072, 7680 bits of the \
            modulus",
        assumption,
        post_quantum: false,
        insecure: bits < MIN_BITS,
        lattice: None,
    }
}

/// Refuses a length that no key has; one below [`MIN_BITS`] unless `insecure` is asked for.
///
/// # Errors
/// [`Error::Range`].
pub fn check_bits(bits: u32, insecure: bool) -> Result<()> {
    let least = if insecure { MIN_INSECURE_BITS } else { MIN_BITS };
    if (least..=MAX_BITS).contains(&bits) && bits.is_multiple_of(64) {
        return Ok(());
    }
    let hint =
        if insecure { "" } else { "; shorter ones are for tests, by the insecure_ functions" };
    Err(Error::Range {
        what: "the length of the modulus",
        expected: format!("a multiple of 64 in {least}..={MAX_BITS} bits{hint}"),
        actual: bits.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_follow_the_table() {
        assert_eq!(
            [512, 1024, 2048, 3072, 4096, 8192].map(security_bits),
            [0, 80, 112, 128, 128, 192]
        );
        assert_eq!([512, 1024, 2048, 3072, 8192].map(order_bits), [64, 160, 256, 256, 384]);
        assert!(statement(1024, "").insecure && !statement(2048, "").insecure);
    }

    #[test]
    fn short_and_odd_lengths_are_refused() {
        for bits in [0, 256, 1024, 2047, 2049, 2050, 8256] {
            let message = check_bits(bits, false).unwrap_err().to_string();
            assert!(message.contains("2048..=8192") && message.contains(&bits.to_string()));
        }
        assert!(check_bits(3072, false).is_ok() && check_bits(512, true).is_ok());
        assert!(check_bits(128, true).is_err() && check_bits(16_384, true).is_err());
    }
}
