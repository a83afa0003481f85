//! Writer's card: the public things that sealing for an index takes. The owner writes it, a writer reads it; no secret is in
//! it, and who has it can add vectors and open none.
//!
//! A frame of kind 12 under the owner's key id, with the payload `suite u16 | mask seed 32 | public key 1216 | index
//! description: u32 and a frame | public key of the index's pair: u32 and a frame, empty under the lattice scheme | writer's
//! name: u16 and UTF-8 | filterable fields: u16, each u16 and UTF-8 | owner's mark 32`. With a centre the suite is 256 more, and
//! before the mark come `numbers u32 | each f32`.
//!
//! The mark is a keyed hash of everything before it: the owner knows its own cards by it. A writer cannot check it and pins
//! the card's fingerprint instead, which the owner tells it by another way than the card's.
//!
//! Suite 1 is HPKE with X-Wing, SHAKE256 and ChaCha20-Poly1305.

use super::message::{expect_params, header};
use super::owner::Owner;
use super::root_key::SegmentRootKey;
use super::wrap::{
    MAX_WRITER, PUBLIC_KEY, SUITE, WrappedKey, WriterPair, check_public, expect_suite, take_short,
    writer_name,
};
use super::{centre, form};
use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::protect::consumed::Written;
use ciphervec_he_secret::keys::{MasterKey, Purpose};
use ciphervec_he_secret::lattice::SegmentId;
use ciphervec_he_secret::wire::{self, HEADER_LEN, KeyId, Kind, Reader};
use std::sync::Arc;

const WHAT: &str = "a writer's card";
const MARK: usize = 32;
/// Added to the suite of a card with a centre, which releases before it refuse.
const CENTRED: u16 = 256;
/// The most filterable fields on a card.
const MAX_FIELDS: usize = 1024;

/// What a writer is given. `Debug` shows its fingerprint.
#[derive(Clone, PartialEq)]
pub struct WriterCard {
    pub(super) spec: IndexSpec,
    pub(super) owner: KeyId,
    pub(super) mask_seed: [u8; 32],
    pub(super) pair: Vec<u8>,
    pub(super) index_key: Vec<u8>,
    pub(super) centre: Vec<f32>,
    writer: String,
    filterable: Vec<String>,
    mark: [u8; MARK],
}

impl core::fmt::Debug for WriterCard {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "WriterCard({:?} for {:?}, {})", self.writer, self.spec, self.fingerprint())
    }
}

impl WriterCard {
    /// The index it is for.
    pub fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    /// The owner's key that segments are wrapped to.
    pub fn owner(&self) -> KeyId {
        self.owner
    }

    /// What the writer takes off its rows; empty where that is nothing.
    pub fn centre(&self) -> &[f32] {
        &self.centre
    }

    /// The writer's name.
    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// Metadata fields that the server could compare, once the owner has made their tags.
    pub fn filterable(&self) -> &[String] {
        &self.filterable
    }

    /// 32 hexadecimal digits that name this very card: what a writer pins.
    pub fn fingerprint(&self) -> String {
        let digest = blake3::derive_key("ciphervec v1 card-fingerprint", &self.to_bytes());
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The frame.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut payload = self.body();
        payload.extend_from_slice(&self.mark);
        header(&self.spec, Kind::WriterCard, self.owner).frame(&payload)
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged bytes; a suite of a later release; keys or a description that do not pass their checks.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::WriterCard, bytes)?;
        let mut reader = Reader::new(WHAT, payload);
        let centred = expect_suite(&mut reader, CENTRED)?;
        let mask_seed = reader.array()?;
        let pair = reader.take(PUBLIC_KEY)?.to_vec();
        check_public(&pair)?;
        let spec = IndexSpec::from_bytes(take_long(&mut reader)?)?;
        expect_params(&spec, WHAT, &header)?;
        let index_key = take_long(&mut reader)?.to_vec();
        form::of(&spec).check_index_key(&spec, &index_key)?;
        let writer = take_short(&mut reader)?;
        let writer = writer_name(&reader, writer)?.to_owned();
        let fields = usize::from(u16::from_le_bytes(reader.array()?));
        if fields > MAX_FIELDS {
            return Err(reader.error(format!("at most {MAX_FIELDS} fields, {fields} came")).into());
        }
        let mut filterable = Vec::new();
        for _ in 0..fields {
            let name = core::str::from_utf8(take_short(&mut reader)?);
            let name = name.map_err(|_| reader.error("a field's name is not UTF-8"))?;
            filterable.push(name.to_owned());
        }
        let mut centre = Vec::new();
        if centred {
            let numbers = reader.u32()? as usize;
            if numbers != spec.dimension() {
                let expected = format!("a centre of {} numbers, {numbers} came", spec.dimension());
                return Err(reader.error(expected).into());
            }
            for _ in 0..numbers {
                centre.push(f32::from_le_bytes(reader.array()?));
            }
            centre::check(&spec, &centre)?;
        }
        let mark = reader.array()?;
        reader.finish()?;
        let owner = header.key;
        Ok(WriterCard { spec, owner, mask_seed, pair, index_key, centre, writer, filterable, mark })
    }

    /// Everything before the mark.
    fn body(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(2 * PUBLIC_KEY + self.index_key.len() + HEADER_LEN);
        let suite = if self.centre.is_empty() { SUITE } else { SUITE + CENTRED };
        out.extend_from_slice(&suite.to_le_bytes());
        out.extend_from_slice(&self.mask_seed);
        out.extend_from_slice(&self.pair);
        for part in [&self.spec.to_bytes(), &self.index_key] {
            out.extend_from_slice(&(part.len() as u32).to_le_bytes());
            out.extend_from_slice(part);
        }
        put_short(&self.writer, &mut out);
        out.extend_from_slice(&(self.filterable.len() as u16).to_le_bytes());
        self.filterable.iter().for_each(|name| put_short(name, &mut out));
        if !self.centre.is_empty() {
            out.extend_from_slice(&(self.centre.len() as u32).to_le_bytes());
            self.centre.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        }
        out
    }

    fn mark_of(&self, master: &MasterKey) -> [u8; MARK] {
        let key = master.derive(Purpose::WriterCard, &[&self.spec.binding()]);
        let mut hasher = blake3::Hasher::new_keyed(key.expose());
        hasher.update(&self.owner.0).update(&self.body());
        *hasher.finalize().as_bytes()
    }
}

impl Owner {
    /// A card for the writer of this name, 1 to 64 bytes. The same choices give the same card: nothing in it is drawn.
    ///
    /// # Errors
    /// Mode `open`, where there is nothing to seal; a name or a field's name out of range; [`Error::NoKeyPair`].
    pub fn writer_card(&self, writer: &str, filterable: &[String]) -> Result<WriterCard> {
        self.writer_card_around(writer, filterable, &[])
    }

    /// As [`Self::writer_card`], for a writer that takes this centre off its rows; an empty one is the origin. Whoever has the card
    /// reads it.
    ///
    /// # Errors
    /// As [`Self::writer_card`]; a centre under another metric than `l2`, or of another length.
    pub fn writer_card_around(
        &self,
        writer: &str,
        filterable: &[String],
        centre: &[f32],
    ) -> Result<WriterCard> {
        let spec = self.spec();
        centre::check(spec, centre)?;
        if !form::of(spec).seals() {
            let known = "sealed, sealed-query or sealed-index to have writers: open seals nothing";
            return Err(Error::choice("mode", known, spec.mode().as_str()));
        }
        if !(1..=MAX_WRITER).contains(&writer.len()) {
            return Err(Error::Range {
                what: "the length of a writer's name",
                expected: format!("1 to {MAX_WRITER} bytes"),
                actual: writer.len().to_string(),
            });
        }
        let long = filterable.iter().find(|name| name.len() > usize::from(u16::MAX));
        if filterable.len() > MAX_FIELDS || long.is_some() {
            return Err(Error::Range {
                what: "the filterable fields on a card",
                expected: format!("at most {MAX_FIELDS}, each of at most {} bytes", u16::MAX),
                actual: filterable.len().to_string(),
            });
        }
        let index_key = match self.form().key_pair() {
            Some(pair) => pair.public_key()?,
            None => Vec::new(),
        };
        let master = self.root().master();
        let mut card = WriterCard {
            spec: spec.clone(),
            owner: self.key_id(),
            mask_seed: *self.mask_seed(),
            pair: WriterPair::derive(master, spec, writer).public_bytes(),
            index_key,
            centre: centre.to_vec(),
            writer: writer.to_owned(),
            filterable: filterable.to_vec(),
            mark: [0; MARK],
        };
        card.mark = card.mark_of(master);
        Ok(card)
    }

    /// Whether this owner made `card`, and none of it was changed since.
    pub fn knows_card(&self, card: &WriterCard) -> bool {
        let roots = [Some(self.root()), self.previous().map(Arc::as_ref)];
        roots.into_iter().flatten().any(|root| {
            // Hashes compare in constant time.
            blake3::Hash::from(card.mark_of(root.master())) == blake3::Hash::from(card.mark)
                && card.spec == *self.spec()
        })
    }

    /// Opens the key that a writer's segment is sealed under, and says who sealed it and when.
    ///
    /// # Errors
    /// Damaged bytes; a wrap for another segment, index or owner.
    pub(super) fn unwrap_key(
        &self,
        segment: SegmentId,
        wrap: &[u8],
    ) -> Result<(SegmentRootKey, Written)> {
        let wrapped = WrappedKey::read(self.spec(), wrap)?;
        let expected = segment.to_string();
        if wrapped.segment != segment {
            let detail = format!("its wrapped key is that of {}", wrapped.segment);
            return Err(Error::Directory { segment: expected, detail });
        }
        let roots = [Some(self.root()), self.previous().map(Arc::as_ref)];
        let Some(root) = roots.into_iter().flatten().find(|root| root.key_id() == wrapped.owner)
        else {
            let (what, expected) = (Kind::SegmentKey.as_str(), self.key_id());
            let error =
                ciphervec_he_secret::Error::WrongKey { what, expected, actual: wrapped.owner };
            return Err(error.into());
        };
        let pair = self.pairs().pair(root, self.spec(), wrapped.writer);
        let (key, time) = pair.open(self.spec(), &wrapped)?;
        let master = Arc::new(MasterKey::from_bytes(*key));
        let written = Written { writer: wrapped.writer.to_owned(), time, segment: segment.0 };
        Ok((SegmentRootKey::new(master, wrapped.owner, self.spec()), written))
    }

    /// Who sealed a segment of this wrap, and when.
    ///
    /// # Errors
    /// Damaged bytes; a wrap for another segment, index or owner.
    pub fn written(&self, segment: SegmentId, wrap: &[u8]) -> Result<Written> {
        Ok(self.unwrap_key(segment, wrap)?.1)
    }
}

fn put_short(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn take_long<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let length = usize::try_from(reader.u32()?).unwrap_or(usize::MAX);
    Ok(reader.take(length)?)
}
