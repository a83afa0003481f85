//! Checkpoints: the number and the name of an owner's state as 24 characters, which two people compare aloud.
//!
//! Crockford's base 32 of the number, 40 bits, and the first 80 bits of the name, in six groups of four. Read without regard to
//! case, spaces and hyphens; I and L are 1, O is 0.

use super::state::StateDigest;

const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LENGTH: usize = 24;

/// One state, as far as 24 characters name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// The state's number.
    pub sequence: u64,
    /// How its name begins.
    pub name: [u8; 10],
}

impl Checkpoint {
    /// That of a state.
    pub fn of(sequence: u64, name: &StateDigest) -> Self {
        let mut start = [0; 10];
        start.copy_from_slice(&name[..10]);
        Checkpoint { sequence: sequence & 0xff_ffff_ffff, name: start }
    }

    /// Reads what `Display` wrote; nothing for other text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bits = 0u128;
        let mut count = 0;
        for letter in text.chars().filter(|one| !matches!(one, '-' | ' ')) {
            let letter = match letter.to_ascii_uppercase() {
                'I' | 'L' => '1',
                'O' => '0',
                other => other,
            };
            let digit = DIGITS.iter().position(|one| char::from(*one) == letter)?;
            bits = bits << 5 | digit as u128;
            count += 1;
            if count > LENGTH {
                return None;
            }
        }
        let [_, number @ .., _, _, _, _, _, _, _, _, _, _] = bits.to_be_bytes();
        let mut name = [0; 10];
        name.copy_from_slice(&bits.to_be_bytes()[6..]);
        let sequence = number.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        (count == LENGTH).then_some(Checkpoint { sequence, name })
    }
}

impl core::fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let name = self.name.iter().fold(0u128, |all, byte| all << 8 | u128::from(*byte));
        let bits = u128::from(self.sequence) << 80 | name;
        for at in 0..LENGTH {
            if at > 0 && at % 4 == 0 {
                f.write_str("-")?;
            }
            let digit = (bits >> (5 * (LENGTH - 1 - at))) as usize & 31;
            write!(f, "{}", char::from(DIGITS[digit]))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_read_as_people_say_it() {
        let mut name = [0; 16];
        name.iter_mut().zip(200..).for_each(|(byte, value)| *byte = value);
        for sequence in [0, 1, 31, 1_000_000, (1 << 40) - 1] {
            let point = Checkpoint::of(sequence, &name);
            let text = point.to_string();
            assert_eq!((text.len(), text.matches('-').count()), (29, 5), "{text}");
            assert_eq!(Checkpoint::parse(&text), Some(point));
            let said = text.to_lowercase().replace('-', " ").replace('0', "o").replace('1', "l");
            assert_eq!(Checkpoint::parse(&said), Some(point));
            assert_eq!((point.sequence, point.name), (sequence, *name.first_chunk().unwrap()));
        }
    }

    #[test]
    fn other_text_is_none() {
        let text = Checkpoint::of(7, &[1; 16]).to_string();
        for other in ["", &text[1..], &format!("{text}0"), &text.replace('1', "U"), "é"] {
            assert_eq!(Checkpoint::parse(other), None, "{other}");
        }
    }
}
