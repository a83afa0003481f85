//! Lower-case hex digits to bytes and back.

/// Bytes of exactly `2 * N` lower-case hex digits.
pub fn parse<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (digits, rest) = text.as_bytes().as_chunks::<2>();
    if digits.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(digits) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

/// Lower-case hex digits of `bytes`.
pub fn show(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_byte_comes_back_and_anything_else_is_refused() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = super::show(&bytes);
        assert!(text.starts_with("000102") && text.ends_with("fdfeff"));
        assert_eq!(super::parse::<256>(&text).map(Vec::from), Some(bytes));
        for bad in ["", "0", "000", "0g", "0A", "é", "00 "] {
            assert_eq!(super::parse::<1>(bad), None, "{bad:?}");
        }
    }
}
