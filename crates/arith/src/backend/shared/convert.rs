//! Representations: the portable conversions, compiled once more for a vector instruction set.

macro_rules! widened_conversions {
    ($features:literal) => {
        crate::backend::shared::convert::widened_conversions! { $features:
            recentre(poly: &mut [u64], from: u64, to: u64);
            centre(poly: &mut [u64], modulus: u64);
            lift(out: &mut [u64], values: &[i64], modulus: u64);
            lift_ternary(out: &mut [u64], values: &[i8], modulus: u64);
            lift_noisy(out: &mut [u64], values: &[i64], noise: &[i32], modulus: u64);
            signed_digit(
                out: &mut [u64],
                poly: &[u64],
                modulus: u64,
                digit: &crate::backend::operands::convert::SignedDigit
            );
            switch_down(out: &mut [u32], poly: &[u64], modulus: u64);
            switch_up(out: &mut [u64], values: &[u32], modulus: u64);
        }
    };
    ($features:literal: $($name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
            #[target_feature(enable = $features)]
            pub(crate) fn $name($($argument: $kind),*) {
                crate::backend::portable::convert::$name($($argument),*);
            }
        )*
    };
}

pub(crate) use widened_conversions;
