//! Numbers of JSON with all of their digits, so that 2^60 + 1 is not 2^60, and 1.0 is 1.

use std::cmp::Ordering;

/// A number; equal ones are the same value of this type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Number(Form);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Form {
    Whole(i64),
    /// A whole number beyond 64 bits: its digits, without a sign.
    Long {
        negative: bool,
        digits: String,
    },
    /// The bits of a number that is not whole.
    Fraction(u64),
    Infinite {
        negative: bool,
    },
}

impl Number {
    /// The number that a text of JSON's grammar stands for. One with a fraction or an exponent is the nearest of 64 bits, and whole
    /// where that is.
    pub fn read(text: &str) -> Self {
        if !text.contains(['.', 'e', 'E']) {
            return Self(whole(text));
        }
        let Ok(value) = text.parse::<f64>() else { return Self(whole(text)) };
        Self(if value.is_infinite() {
            Form::Infinite { negative: value < 0.0 }
        } else if value.fract() == 0.0 {
            whole(&format!("{value:.0}"))
        } else {
            Form::Fraction(value.to_bits())
        })
    }

    /// Text that is equal exactly where two numbers are: `i12`, or `f` and C's `%a` of what is not whole.
    pub fn canonical(&self) -> String {
        match &self.0 {
            Form::Whole(value) => format!("i{value}"),
            Form::Long { negative, digits } => format!("i{}{digits}", sign(*negative)),
            Form::Infinite { negative } => format!("f{}inf", sign(*negative)),
            Form::Fraction(bits) => {
                let (exponent, digits) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
                let (lead, power) =
                    if exponent == 0 { (0, -1022) } else { (1, exponent as i64 - 1023) };
                format!("f{}0x{lead}.{digits:013x}p{power:+}", sign(bits >> 63 == 1))
            }
        }
    }

    /// Where it stands among numbers of 64 bits: below all of them, among them, or above.
    fn side(&self) -> i8 {
        match &self.0 {
            Form::Infinite { negative: true } => -2,
            Form::Long { negative: true, .. } => -1,
            Form::Whole(_) | Form::Fraction(_) => 0,
            Form::Long { negative: false, .. } => 1,
            Form::Infinite { negative: false } => 2,
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Form::Whole(a), Form::Whole(b)) => a.cmp(b),
            (Form::Fraction(a), Form::Fraction(b)) => {
                f64::from_bits(*a).total_cmp(&f64::from_bits(*b))
            }
            (Form::Whole(a), Form::Fraction(b)) => below_fraction(*a, *b),
            (Form::Fraction(a), Form::Whole(b)) => below_fraction(*b, *a).reverse(),
            (Form::Long { negative, digits: a }, Form::Long { digits: b, .. })
                if self.side() == other.side() =>
            {
                let longer = a.len().cmp(&b.len()).then_with(|| a.cmp(b));
                if *negative { longer.reverse() } else { longer }
            }
            _ => self.side().cmp(&other.side()),
        }
    }
}

/// What is not whole lies within ±2^52.
fn below_fraction(whole: i64, fraction: u64) -> Ordering {
    if whole <= f64::from_bits(fraction).floor() as i64 {
        Ordering::Less
    } else {
        Ordering::Greater
    }
}

fn whole(digits: &str) -> Form {
    digits.parse().map_or_else(
        |_| Form::Long {
            negative: digits.starts_with('-'),
            digits: digits.trim_start_matches('-').to_owned(),
        },
        Form::Whole,
    )
}

const fn sign(negative: bool) -> &'static str {
    if negative { "-" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_in_the_order_of_their_values() {
        let ascending = [
            "-1e400",
            "-1e300",
            "-100000000000000000000000",
            "-9223372036854775809",
            "-9223372036854775808",
            "-1.5",
            "-1",
            "-0.5",
            "0",
            "5e-324",
            "0.5",
            "1",
            "9007199254740992",
            "9007199254740993",
            "1152921504606846976",
            "1152921504606846977",
            "9223372036854775807",
            "9223372036854775808",
            "1e22",
            "10000000000000000000001",
            "1e400",
        ];
        let numbers: Vec<Number> = ascending.iter().map(|text| Number::read(text)).collect();
        for (i, a) in numbers.iter().enumerate() {
            for (j, b) in numbers.iter().enumerate() {
                assert_eq!(a.cmp(b), i.cmp(&j), "{} beside {}", ascending[i], ascending[j]);
                assert_eq!(a.canonical() == b.canonical(), i == j);
            }
        }
    }

    #[test]
    fn canonical_text_is_that_of_release_0_1() {
        // Python's `float.hex` and `int`, which tags of stored rows were made of.
        for (text, expected) in [
            ("1.0", "i1"),
            ("-0.0", "i0"),
            ("-0", "i0"),
            ("1e22", "i10000000000000000000000"),
            ("1e23", "i99999999999999991611392"),
            ("0.1", "f0x1.999999999999ap-4"),
            ("-2.5", "f-0x1.4000000000000p+1"),
            ("5e-324", "f0x0.0000000000001p-1022"),
            ("1e999", "finf"),
            ("12345678901234567890123", "i12345678901234567890123"),
        ] {
            assert_eq!(Number::read(text).canonical(), expected, "{text}");
        }
    }
}
