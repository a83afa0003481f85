//! Names of ciphertexts after what was done to them. Ciphertexts of one name are identical, and so is the
//! error that a rescale or a key switch adds to them. Both sides.

/// What was done.
pub(super) mod did {
    pub const FRESH: u64 = 0;
    pub const ADD: u64 = 1;
    pub const NEGATE: u64 = 2;
    pub const ADD_VALUES: u64 = 3;
    pub const MULTIPLY_VALUES: u64 = 4;
    pub const MULTIPLY: u64 = 5;
    pub const NORMALISE: u64 = 6;
    pub const FOLLOW: u64 = 7;
    pub const ROTATE: u64 = 8;
    pub const FUNCTION: u64 = 9;
    pub const MULTIPLY_INTEGER: u64 = 10;
}

/// The name of what comes of these.
pub(super) fn hashed(parts: &[u64]) -> u64 {
    let mix = |name: u64, part: &u64| {
        let mut mixed = (name ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^= mixed >> 32;
        mixed.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(29)
    };
    parts.iter().fold(0x51_7c_c1_b7, mix)
}

/// The name of numbers.
pub(super) fn named(values: &[f64]) -> u64 {
    let mix = |name: u64, value: &f64| {
        (name ^ value.to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
    };
    values.iter().fold(values.len() as u64, mix)
}
