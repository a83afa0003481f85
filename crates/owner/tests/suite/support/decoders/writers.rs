//! A card and a wrapped key that their own encoders wrote, and the decoders that read them back.

use ciphervec_owner::search::{Owner, WrappedKey, Writer, WriterCard};
use ciphervec_owner::{Id, IndexSpec, Keys, Metric, Mode, Precision};
use std::sync::LazyLock;

/// What the owner and the writer of one small index made.
pub struct Writers {
    /// The index.
    pub spec: IndexSpec,
    /// A card with two filterable fields.
    pub card: Vec<u8>,
    /// The wrapped key of a segment of one row.
    pub wrap: Vec<u8>,
}

/// Made once.
pub static WRITERS: LazyLock<Writers> = LazyLock::new(|| {
    let spec = IndexSpec::new("doors", 3, Metric::Cosine, Mode::SealedIndex, Precision::Standard)
        .expect("a description");
    let owner = Owner::new(&Keys::from_master([7; 32]), spec.clone()).expect("an owner");
    let fields = ["colour".to_owned(), "größe".to_owned()];
    let card = owner.writer_card("door 3", &fields).expect("a card");
    let writer = Writer::new(card.clone()).expect("a writer");
    let sealed =
        writer.seal(&[1.0, 2.0, 3.0], &[Id::from(1)], Vec::new(), 1, 1).expect("a segment");
    Writers { spec, card: card.to_bytes(), wrap: sealed.wrap }
});

impl Writers {
    /// A writer's card.
    pub fn read_card(&self, bytes: &[u8]) -> bool {
        WriterCard::from_bytes(bytes).is_ok_and(|card| {
            assert_eq!(card.to_bytes(), bytes);
            true
        })
    }

    /// A wrapped key, not opened.
    pub fn read_wrap(&self, bytes: &[u8]) -> bool {
        WrappedKey::read(&self.spec, bytes).is_ok_and(|wrap| {
            assert_eq!(wrap.to_bytes(&self.spec), bytes);
            true
        })
    }
}
