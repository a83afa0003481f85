//! Roots of unity: cosine and sine of a fraction of a turn.
//!
//! Integers all the way to the last rounding, so that every platform gets the same doubles whatever
//! its mathematical library does.

use super::Complex;

/// `floor(2^92 · 2π)`.
const TURN: u128 = 0x6487_ED51_10B4_611A_6263_3145;
/// One, as the fixed-point numbers here have it.
const ONE: u64 = 1 << FRACTION;
const FRACTION: u32 = 62;
/// Terms of the series: at most π/4, the next one is below 2^-75.
const TERMS: u64 = 11;

/// `exp(2πi numerator / 2^log_order)`, each part off by at most half a unit in the last place of 1
/// and 2^-59.
///
/// `log_order` is at most 28; whole turns in the numerator do not matter.
pub(crate) fn root_of_unity(numerator: u64, log_order: u32) -> Complex {
    // Which eighth of a turn, and how far into it, in 2^-32 of it.
    let place = numerator.unbounded_shl(64 - log_order) >> 29;
    let (octant, rest) = (place >> 32, place & 0xffff_ffff);
    // Odd eighths are walked from their far end, so that the angle stays at most π/4.
    let rest = if octant % 2 == 1 { (1 << 32) - rest } else { rest };
    let angle = ((u128::from(rest) * TURN) >> (92 + 35 - FRACTION)) as u64;
    let (cosine, sine) = series(angle);
    let (cosine, sine) = (fraction(cosine), fraction(sine));
    match octant {
        0 => Complex::new(cosine, sine),
        1 => Complex::new(sine, cosine),
        2 => Complex::new(-sine, cosine),
        3 => Complex::new(-cosine, sine),
        4 => Complex::new(-cosine, -sine),
        5 => Complex::new(-sine, -cosine),
        6 => Complex::new(sine, -cosine),
        _ => Complex::new(cosine, -sine),
    }
}

fn product(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> FRACTION) as u64
}

/// Cosine and sine of an angle up to π/4 by their series, from the last term inwards:
/// `1 - x²/(1·2) (1 - x²/(3·4) (1 - ...))` and the same with `2·3`, `4·5`, ….
fn series(angle: u64) -> (u64, u64) {
    let square = product(angle, angle);
    let (mut cosine, mut sine) = (ONE, ONE);
    for k in (1..=TERMS).rev() {
        cosine = ONE - product(square, cosine) / ((2 * k - 1) * (2 * k));
        sine = ONE - product(square, sine) / ((2 * k) * (2 * k + 1));
    }
    (cosine, product(angle, sine))
}

fn fraction(x: u64) -> f64 {
    x as f64 / ONE as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighths_are_exact() {
        let half = 0.5f64.sqrt();
        let expected = [
            (1.0, 0.0),
            (half, half),
            (0.0, 1.0),
            (-half, half),
            (-1.0, 0.0),
            (-half, -half),
            (0.0, -1.0),
            (half, -half),
        ];
        for (k, (re, im)) in (0..).zip(expected) {
            assert_eq!(root_of_unity(k, 3), Complex::new(re, im), "{k}/8");
        }
        assert_eq!(root_of_unity(5, 0), Complex::new(1.0, 0.0));
        assert_eq!(root_of_unity(1, 1), Complex::new(-1.0, 0.0));
    }

    #[test]
    fn agrees_with_the_library_within_its_error() {
        for log in [4, 9, 16, 19, 28] {
            for i in 0..2000u64 {
                let numerator = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - log);
                // The library's error of one unit, and its argument's: up to 2π, so 2^-51.
                let angle = std::f64::consts::TAU * numerator as f64 / f64::from(1u32 << log);
                let (sine, cosine) = angle.sin_cos();
                let z = root_of_unity(numerator, log);
                assert!((z.re - cosine).abs() < 2e-15, "cos of {numerator}/2^{log}");
                assert!((z.im - sine).abs() < 2e-15, "sin of {numerator}/2^{log}");
                assert!((z.norm_sqr() - 1.0).abs() < 4.5e-16);
            }
        }
    }
}
