//! A segment's ids and norms as one sealed blob. Key owner only.
//!
//! Plaintext, little-endian: rows u32 | level u8 | flags u8 (bit 0: norms follow, bit 1: a witness
//! does, bit 2: a centre does) | 0 u16 | with a witness its length u32 and 0 u32 | with a centre the numbers it has, u32, and
//! 0 u32 | one 12-byte entry per row (kind u8, 3
//! zero bytes, then the integer, or the text's length as u64) | texts in row order | norms f32 |
//! the centre f32 | the witness. An entry of 12 bytes keeps what a parser allocates under twice the bytes it was
//! given. The witness is the form's own: what it opens the segment's rows with, beside the key.
//!
//! Sealed: `CVSIDECR` | version u32 | nonce | ciphertext | tag, bound to the header and the
//! caller's place. Version 1 has no witness, version 2 has one, version 3 has a centre, with a
//! witness or without.
//!
//! Weights of a witness are streams under the key derived as `answer-check`.

use crate::decode::{DecodeError, Reader};
use crate::protect::aead::{self, AeadKey, EnvelopeError, OVERHEAD};
use crate::protect::id::{self, Id};
use std::fmt;
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"CVSIDECR";
const VERSION: u32 = 3;
const WITHOUT_CENTRE: u32 = 2;
const WITHOUT_WITNESS: u32 = 1;
const NORMS: u8 = 1;
const WITNESS: u8 = 2;
const CENTRE: u8 = 4;
const ENTRY: usize = 12;
const WHAT: &str = "sidecar";

/// What the key owner needs to turn a segment's rows into results: the name and norm of each row.
///
/// `Debug` shows sizes only: ids are plaintext data.
#[derive(Clone, PartialEq)]
pub struct Sidecar {
    /// The id of each row.
    pub ids: Vec<Id>,
    /// The Euclidean norm of each row before normalisation: one per row, or none when the metric
    /// needs none.
    pub norms: Vec<f32>,
    /// What was taken off each row before it was sealed; empty where that is nothing.
    pub centre: Vec<f32>,
    /// The packing level of the segment (docs/sealed.md); 0 in the compact form.
    pub level: u8,
    /// Rows in the segment; equals `ids.len()`.
    pub rows: u32,
    /// What the form opens the segment's rows with, beside the key; empty where that is nothing.
    pub witness: Zeroizing<Vec<u8>>,
}

/// The place of a sidecar, for its associated data: collection and segment.
pub fn associated_data(collection: &[u8], segment: &[u8; 16]) -> Vec<u8> {
    aead::associated_data("ciphervec v1 sidecar", &[collection, segment])
}

impl Sidecar {
    /// The plaintext bytes; wiped on drop.
    ///
    /// # Errors
    /// [`EnvelopeError::Plaintext`] when `rows`, `ids` and `norms` disagree, an id breaks its
    /// limits, or a norm is negative, infinite or NaN.
    pub fn to_plain_bytes(&self) -> Result<Zeroizing<Vec<u8>>, EnvelopeError> {
        self.check()?;
        let texts: usize =
            self.ids.iter().map(|id| if let Id::Text(text) = id { text.len() } else { 0 }).sum();
        let length =
            16 + self.ids.len() * ENTRY + texts + self.norms.len() * 4 + self.witness.len();
        let length = length + 8 + self.centre.len() * 4;
        let mut out = Zeroizing::new(Vec::with_capacity(length));
        let norms = if self.norms.is_empty() { 0 } else { NORMS };
        let witness = if self.witness.is_empty() { 0 } else { WITNESS };
        out.extend_from_slice(&self.rows.to_le_bytes());
        let centre = if self.centre.is_empty() { 0 } else { CENTRE };
        out.extend_from_slice(&[self.level, norms | witness | centre, 0, 0]);
        for (what, length) in
            [("sidecar witness", self.witness.len()), ("sidecar centre", self.centre.len())]
        {
            if length > 0 {
                let length = u32::try_from(length).map_err(|_| {
                    let expected = "below 2^32".to_owned();
                    EnvelopeError::Plaintext { what, expected, actual: length.to_string() }
                })?;
                out.extend_from_slice(&u64::from(length).to_le_bytes());
            }
        }
        for id in &self.ids {
            let (kind, value) = match id {
                Id::Number(number) => (0, number.to_le_bytes()),
                Id::Text(text) => (1, (text.len() as u64).to_le_bytes()),
            };
            out.extend_from_slice(&[kind, 0, 0, 0]);
            out.extend_from_slice(&value);
        }
        for id in &self.ids {
            if let Id::Text(text) = id {
                out.extend_from_slice(text.as_bytes());
            }
        }
        for number in self.norms.iter().chain(&self.centre) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.witness);
        Ok(out)
    }

    fn check(&self) -> Result<(), EnvelopeError> {
        let wrong = |what, expected: String, actual: String| EnvelopeError::Plaintext {
            what,
            expected,
            actual,
        };
        if self.ids.len() != self.rows as usize {
            return Err(wrong(
                "sidecar ids",
                format!("{} (one a row)", self.rows),
                self.ids.len().to_string(),
            ));
        }
        if !self.norms.is_empty() && self.norms.len() != self.ids.len() {
            return Err(wrong(
                "sidecar norms",
                format!("0 or {}", self.rows),
                self.norms.len().to_string(),
            ));
        }
        for (row, id) in self.ids.iter().enumerate() {
            id.validate().map_err(|error| {
                wrong("sidecar id", "a valid id".into(), format!("row {row}: {error}"))
            })?;
        }
        if let Some((row, norm)) =
            self.norms.iter().enumerate().find(|(_, norm)| !valid_norm(**norm))
        {
            return Err(wrong(
                "sidecar norm",
                "finite and >= 0".into(),
                format!("row {row}: {norm}"),
            ));
        }
        if let Some(number) = self.centre.iter().find(|number| !number.is_finite()) {
            return Err(wrong("sidecar centre", "finite".into(), number.to_string()));
        }
        Ok(())
    }

    /// Reads [`Sidecar::to_plain_bytes`]; nothing else is accepted.
    ///
    /// # Errors
    /// [`DecodeError`] naming the offset.
    pub fn from_plain_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(WHAT, bytes);
        let rows = reader.u32()?;
        let level = reader.u8()?;
        let flags = reader.u8()?;
        if flags > NORMS | WITNESS | CENTRE {
            return Err(reader.field("flags", 5, "0 to 7", flags));
        }
        if reader.u16()? != 0 {
            return Err(reader.field("reserved bytes", 6, 0, "not 0"));
        }
        let count = rows as usize;
        if flags != 0 && count == 0 {
            return Err(reader.field("flags", 5, "0 when there are no rows", flags));
        }
        let norm_bytes = if flags & NORMS != 0 { 4 } else { 0 };
        let witness = if flags & WITNESS != 0 { reader.u64()? } else { 0 };
        let Some(witness) =
            usize::try_from(witness).ok().filter(|&length| length <= reader.remaining())
        else {
            return Err(reader.field("witness length", 8, "at most what follows", witness));
        };
        if flags & WITNESS != 0 && witness == 0 {
            return Err(reader.field("witness length", 8, "above 0", witness));
        }
        let centre_at = reader.offset();
        let centre = if flags & CENTRE != 0 { reader.u64()? } else { 0 };
        let Some(centre) =
            usize::try_from(centre).ok().filter(|&numbers| numbers <= reader.remaining() / 4)
        else {
            return Err(reader.field("centre length", centre_at, "at most what follows", centre));
        };
        if flags & CENTRE != 0 && centre == 0 {
            return Err(reader.field("centre length", centre_at, "above 0", centre));
        }
        reader.need_items(count, ENTRY + norm_bytes)?;
        let mut entries = Reader::new(WHAT, reader.take(count * ENTRY)?);
        let behind = centre * 4 + witness;
        let norms_at = reader.remaining().checked_sub(count * norm_bytes + behind);
        let Some(text_length) = norms_at else {
            return Err(reader.field(
                "norms",
                reader.offset(),
                count * norm_bytes,
                reader.remaining(),
            ));
        };
        let mut texts = Reader::new(WHAT, reader.take(text_length)?);
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            ids.push(read_id(&mut entries, &mut texts)?);
        }
        texts.finish()?;
        let mut norms = Vec::with_capacity(if norm_bytes > 0 { count } else { 0 });
        while reader.remaining() > behind {
            let offset = reader.offset();
            let norm = f32::from_le_bytes(reader.array()?);
            if !valid_norm(norm) {
                return Err(reader.field("norm", offset, "finite and >= 0", norm));
            }
            norms.push(norm);
        }
        let mut numbers = Vec::with_capacity(centre);
        while reader.remaining() > witness {
            let offset = reader.offset();
            let number = f32::from_le_bytes(reader.array()?);
            if !number.is_finite() {
                return Err(reader.field("centre", offset, "finite", number));
            }
            numbers.push(number);
        }
        let witness = Zeroizing::new(reader.take(witness)?.to_vec());
        reader.finish()?;
        Ok(Self { ids, norms, centre: numbers, level, rows, witness })
    }

    /// Encrypts under `aead`, bound to `aad` (see [`associated_data`]), with a fresh random nonce.
    ///
    /// # Errors
    /// As [`Sidecar::to_plain_bytes`], and [`EnvelopeError::Randomness`].
    pub fn seal(&self, aead: &AeadKey, aad: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
        let plain = self.to_plain_bytes()?;
        let mut out = Vec::with_capacity(12 + plain.len() + OVERHEAD);
        out.extend_from_slice(MAGIC);
        let version = self.version();
        out.extend_from_slice(&version.to_le_bytes());
        let place = aead::associated_data(WHAT, &[&out, aad]);
        aead.seal_into(WHAT, &place, &plain, &mut out)?;
        Ok(out)
    }

    /// Opens [`Sidecar::seal`]'s bytes.
    ///
    /// # Errors
    /// [`EnvelopeError::Decode`] for bytes of another kind or version,
    /// [`EnvelopeError::Unauthentic`] for another key or place or changed bytes.
    pub fn open(aead: &AeadKey, aad: &[u8], sealed: &[u8]) -> Result<Self, EnvelopeError> {
        let mut reader = Reader::new(WHAT, sealed);
        let version = reader.header(MAGIC, VERSION)?;
        let (header, body) = sealed.split_at(12);
        let place = aead::associated_data(WHAT, &[header, aad]);
        let plain = aead.open(WHAT, &place, body)?;
        let sidecar = Self::from_plain_bytes(&plain)?;
        if version != sidecar.version() {
            let expected = "3 with a centre, 2 with a witness alone, 1 without";
            return Err(reader.field("version", 8, expected, version).into());
        }
        Ok(sidecar)
    }

    /// The oldest that says what there is to say.
    fn version(&self) -> u32 {
        match (self.centre.is_empty(), self.witness.is_empty()) {
            (false, _) => VERSION,
            (true, false) => WITHOUT_CENTRE,
            (true, true) => WITHOUT_WITNESS,
        }
    }
}

fn read_id(entries: &mut Reader<'_>, texts: &mut Reader<'_>) -> Result<Id, DecodeError> {
    let offset = 8 + entries.offset();
    let kind: [u8; 4] = entries.array()?;
    let value: [u8; 8] = entries.array()?;
    match kind {
        [0, 0, 0, 0] => Ok(Id::Number(i64::from_le_bytes(value))),
        [1, 0, 0, 0] => {
            let length = u64::from_le_bytes(value);
            if length == 0 || length > Id::MAX_TEXT as u64 {
                return Err(entries.field("text length", offset + 4, "1..=65535", length));
            }
            let at = texts.offset();
            let bytes = texts.take(length as usize)?;
            Id::text(bytes)
                .map_err(|expected| texts.field("id text", at, expected, id::describe(bytes)))
        }
        _ => Err(entries.field(
            "id kind",
            offset,
            "0 (number) or 1 (text)",
            u32::from_le_bytes(kind),
        )),
    }
}

fn valid_norm(norm: f32) -> bool {
    norm.is_finite() && norm.is_sign_positive()
}

impl fmt::Debug for Sidecar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sidecar")
            .field("rows", &self.rows)
            .field("level", &self.level)
            .field("norms", &self.norms.len())
            .field("witness", &self.witness.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sidecar {
        Sidecar {
            ids: vec![Id::from("alpha"), Id::from(-3), Id::from("ω")],
            norms: vec![1.0, 0.5, 0.0],
            centre: Vec::new(),
            level: 7,
            rows: 3,
            witness: Zeroizing::new(Vec::new()),
        }
    }

    fn witnessed() -> Sidecar {
        Sidecar { witness: Zeroizing::new(vec![9; 70]), ..sample() }
    }

    #[test]
    fn a_witness_makes_version_2() -> Result<(), EnvelopeError> {
        let plain = witnessed().to_plain_bytes()?;
        assert_eq!(plain[4..16], [7, 3, 0, 0, 70, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(plain[plain.len() - 70..], [9; 70]);
        assert_eq!(Sidecar::from_plain_bytes(&plain)?, witnessed());
        for length in 0..plain.len() {
            assert!(Sidecar::from_plain_bytes(&plain[..length]).is_err(), "length {length}");
        }
        let key = AeadKey::new([1; 32]);
        for (sidecar, version) in [(sample(), 1), (witnessed(), 2)] {
            let sealed = sidecar.seal(&key, b"")?;
            assert_eq!(sealed[8..12], [version, 0, 0, 0]);
            assert_eq!(Sidecar::open(&key, b"", &sealed)?, sidecar);
            // The version is bound with the rest.
            let mut other = sealed.clone();
            other[8] = 3 - version;
            assert!(Sidecar::open(&key, b"", &other).is_err());
        }
        Ok(())
    }

    #[test]
    fn a_centre_makes_version_3() -> Result<(), EnvelopeError> {
        let centred = |from: Sidecar| Sidecar { centre: vec![-1.5, 2e6], ..from };
        let plain = centred(witnessed()).to_plain_bytes()?;
        assert_eq!(plain[4..24], [7, 7, 0, 0, 70, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(plain[plain.len() - 78..plain.len() - 74], (-1.5f32).to_le_bytes());
        let key = AeadKey::new([1; 32]);
        for sidecar in [centred(sample()), centred(witnessed())] {
            let plain = sidecar.to_plain_bytes()?;
            assert_eq!(Sidecar::from_plain_bytes(&plain)?, sidecar);
            for length in 0..plain.len() {
                assert!(Sidecar::from_plain_bytes(&plain[..length]).is_err(), "length {length}");
            }
            let sealed = sidecar.seal(&key, b"")?;
            assert_eq!(sealed[8..12], [3, 0, 0, 0]);
            assert_eq!(Sidecar::open(&key, b"", &sealed)?, sidecar);
        }
        let mut infinite = plain.to_vec();
        let at = infinite.len() - 74;
        infinite[at..at + 4].copy_from_slice(&f32::INFINITY.to_le_bytes());
        assert!(Sidecar::from_plain_bytes(&infinite).is_err());
        let mut long = plain.to_vec();
        long[19] = 0xff;
        assert!(Sidecar::from_plain_bytes(&long).is_err(), "a length beyond what is there");
        assert!(Sidecar { centre: vec![f32::NAN], ..sample() }.to_plain_bytes().is_err());
        Ok(())
    }

    #[test]
    fn plain_bytes_are_the_documented_layout() -> Result<(), EnvelopeError> {
        let plain = sample().to_plain_bytes()?;
        assert_eq!(plain[..8], [3, 0, 0, 0, 7, 1, 0, 0]);
        assert_eq!(plain[8..20], [1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(plain[20..24], [0, 0, 0, 0]);
        assert_eq!(plain[24..32], (-3i64).to_le_bytes());
        assert_eq!(&plain[44..49], b"alpha");
        assert_eq!(plain.len(), 8 + 36 + 5 + 2 + 12);
        assert_eq!(Sidecar::from_plain_bytes(&plain)?, sample());
        Ok(())
    }

    #[test]
    fn every_truncation_and_any_trailing_byte_is_refused() -> Result<(), EnvelopeError> {
        let plain = sample().to_plain_bytes()?;
        for length in 0..plain.len() {
            assert!(Sidecar::from_plain_bytes(&plain[..length]).is_err(), "length {length}");
        }
        let mut longer = plain.to_vec();
        longer.push(0);
        assert!(Sidecar::from_plain_bytes(&longer).is_err());
        Ok(())
    }

    #[test]
    fn a_huge_row_count_is_refused_before_allocation() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 2, 3];
        assert!(matches!(Sidecar::from_plain_bytes(&bytes), Err(DecodeError::Truncated { .. })));
    }

    #[test]
    fn opens_only_in_its_collection_and_segment() -> Result<(), EnvelopeError> {
        let key = AeadKey::new([1; 32]);
        let place = associated_data(b"faces", &[1; 16]);
        let sealed = sample().seal(&key, &place)?;
        assert_eq!(Sidecar::open(&key, &place, &sealed)?, sample());
        for other in
            [associated_data(b"texts", &[1; 16]), associated_data(b"faces", &[2; 16]), Vec::new()]
        {
            assert_eq!(
                Sidecar::open(&key, &other, &sealed),
                Err(EnvelopeError::Unauthentic { what: "sidecar" })
            );
        }
        assert!(Sidecar::open(&AeadKey::new([2; 32]), &place, &sealed).is_err());
        assert_ne!(sample().seal(&key, &place)?, sealed, "nonces are fresh");
        Ok(())
    }

    #[test]
    fn every_flipped_bit_of_a_sealed_sidecar_is_refused() -> Result<(), EnvelopeError> {
        let key = AeadKey::new([1; 32]);
        let sealed = sample().seal(&key, b"")?;
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Sidecar::open(&key, b"", &changed).is_err(), "bit {bit}");
        }
        Ok(())
    }

    #[test]
    fn inconsistent_sidecars_are_not_sealed() {
        let refused = |sidecar: Sidecar| {
            matches!(sidecar.to_plain_bytes(), Err(EnvelopeError::Plaintext { .. }))
        };
        assert!(refused(Sidecar { rows: 4, ..sample() }));
        assert!(refused(Sidecar { norms: vec![1.0], ..sample() }));
        assert!(refused(Sidecar { norms: vec![1.0, f32::NAN, 1.0], ..sample() }));
        assert!(refused(Sidecar { norms: vec![1.0, -1.0, 1.0], ..sample() }));
        assert!(refused(Sidecar { ids: vec![Id::from(""), Id::from(1), Id::from(2)], ..sample() }));
        assert!(!refused(Sidecar { norms: vec![], ..sample() }));
    }

    #[test]
    fn debug_names_no_id() {
        let shown = format!("{:?}", sample());
        assert!(!shown.contains("alpha"), "{shown}");
    }
}
