//! Writers seal, owners open: every mode and scheme, rows and records, two writers and one id; what a thief of a writer has.

use ciphervec_arith::AlignedBytes;
use ciphervec_arith::sample::Stream;
use ciphervec_owner::protect::consumed::Consumed;
use ciphervec_owner::protect::records::{Place, RecordBatch, open_row};
use ciphervec_owner::search::{
    Origin, Owner, QueryOptions, Retrieval, RotationState, SegmentDirectory, ServerIndex, Standing,
    StoredSidecar, WrappedKey, Writer, WriterCard, WrittenSegment,
};
use ciphervec_owner::{Error, Id, IndexSpec, Keys, Metric, Mode, Precision, Scheme};

const DIMENSION: usize = 16;

fn random(rows: usize, seed: u8) -> Vec<f32> {
    let mut words = vec![0u64; rows * DIMENSION];
    Stream::new(&[seed; 32], 0).uniform_bits(24, &mut words);
    words.iter().map(|&word| word as f32 / 8_388_608.0 - 1.0).collect()
}

fn ids(numbers: core::ops::Range<i64>) -> Vec<Id> {
    numbers.map(Id::Number).collect()
}

fn spec(mode: Mode, precision: Precision, scheme: Scheme) -> IndexSpec {
    IndexSpec::new("doors", DIMENSION as u32, Metric::L2, mode, precision)
        .unwrap()
        .with_scheme(
            scheme,
            matches!(scheme, Scheme::Paillier | Scheme::DamgardJurik | Scheme::OkamotoUchiyama)
                .then_some(2048),
        )
        .unwrap()
}

/// An owner with its server and what it remembers.
struct Owned {
    owner: Owner,
    server: ServerIndex,
    directory: SegmentDirectory,
}

impl Owned {
    fn new(keys: &Keys, spec: &IndexSpec, custody: &RotationState<'_>) -> Self {
        let owner = Owner::with_rotation(keys, spec.clone(), custody).unwrap();
        let mut server = ServerIndex::new(spec.clone()).unwrap();
        if spec.scheme().is_additive() {
            owner.generate_key_pair().unwrap();
            server.set_evaluation_keys(&owner.public_key().unwrap()).unwrap();
        } else if let Some(keys) = owner.evaluation(0).unwrap() {
            server.set_evaluation_keys(&keys.to_bytes()).unwrap();
        }
        Owned { owner, server, directory: SegmentDirectory::new() }
    }

    fn writer(&self, name: &str) -> Writer {
        let card = self.owner.writer_card(name, &["colour".to_owned()]).unwrap();
        let read = WriterCard::from_bytes(&card.to_bytes()).unwrap();
        assert!(read == card && self.owner.knows_card(&read));
        Writer::new(read).unwrap()
    }

    fn take(&mut self, written: &WrittenSegment) {
        let sealed = &written.sealed;
        let bytes = AlignedBytes::from_slice(&sealed.segment);
        assert_eq!(self.server.add(bytes).unwrap(), sealed.id);
        self.directory
            .add_written(&self.owner, sealed.id, &sealed.sidecar, &written.wrap, &[])
            .unwrap();
    }

    fn nearest(&self, query: &[f32]) -> Vec<(Id, f64)> {
        let query = self.owner.query(query, &self.directory, QueryOptions::default()).unwrap();
        let response = self.server.evaluate(query.to_bytes()).unwrap();
        let ask = Retrieval::TopK(100);
        let opened = self.owner.open(&query, &response.bytes, &self.directory, ask).unwrap();
        opened.hits[0].iter().map(|hit| (hit.id.clone(), hit.value)).collect()
    }
}

fn written(writer: &Writer, seed: u8, names: core::ops::Range<i64>) -> WrittenSegment {
    let count = (names.end - names.start) as usize;
    let payloads = names.clone().map(|name| format!("row {name}").into_bytes()).collect();
    writer.seal(&random(count, seed), &ids(names), payloads, count, 1).unwrap()
}

/// The owner finds, unseals and reads what a writer sealed, beside its own rows.
fn one_index(mode: Mode, precision: Precision, scheme: Scheme) {
    let (keys, spec) = (Keys::from_master([7; 32]), spec(mode, precision, scheme));
    let mut both = Owned::new(&keys, &spec, &RotationState::default());
    let own = both.owner.seal(&random(5, 1), &ids(0..5)).unwrap();
    both.directory.add(&both.owner, own.id, &own.sidecar, &[]).unwrap();
    both.server.add(own.segment).unwrap();
    let segment = written(&both.writer("door"), 2, 5..9);
    both.take(&segment);
    assert_eq!(both.directory.origin(segment.sealed.id), Some(&Origin::Writer("door".into())));
    let rows = [random(5, 1), random(4, 2)].concat();
    for (name, row) in (0..).zip(rows.chunks_exact(DIMENSION)) {
        let hits = both.nearest(row);
        assert_eq!(hits.len(), 9);
        assert_eq!(hits[0].0, Id::Number(name), "{mode:?} {scheme:?}");
        assert!(hits[0].1.abs() < 0.02, "{mode:?} {scheme:?}: {}", hits[0].1);
    }
    let back =
        both.owner.unseal_rows(&segment.sealed.segment, Some(&[3, 0]), &both.directory).unwrap();
    let sent = random(4, 2);
    for (row, found) in [3, 0].into_iter().zip(back.chunks_exact(DIMENSION)) {
        let norm = both.directory.norm(&Id::Number(5 + row)).unwrap();
        for (x, y) in sent[row as usize * DIMENSION..].iter().zip(found) {
            assert!((f64::from(*x) - f64::from(*y) * norm).abs() < 0.01, "{mode:?} {scheme:?}");
        }
    }
    let root = both.directory.root(segment.sealed.id).unwrap();
    let (binding, batch) = (spec.binding(), segment.records.unwrap());
    let place = Place { collection: &binding, segment: &segment.sealed.id.0 };
    let batch = RecordBatch::parse(&batch).unwrap();
    let read = open_row(&batch, root.aead(), place, &Id::Number(6), 1).unwrap();
    assert_eq!(read.as_slice(), b"row 6");
    assert!(open_row(&batch, both.owner.aead(), place, &Id::Number(6), 1).is_err());
}

#[test]
fn the_owner_opens_what_a_writer_sealed_in_every_mode() {
    for precision in [Precision::Standard, Precision::Small, Precision::Wide] {
        one_index(Mode::SealedIndex, precision, Scheme::Lattice);
    }
    one_index(Mode::SealedQuery, Precision::Standard, Scheme::Lattice);
    one_index(Mode::Sealed, Precision::Standard, Scheme::Lattice);
}

#[test]
fn and_under_the_additively_homomorphic_schemes() {
    for scheme in [Scheme::Paillier, Scheme::DamgardJurik, Scheme::OkamotoUchiyama, Scheme::ElGamal]
    {
        one_index(Mode::SealedIndex, Precision::Standard, scheme);
    }
}

#[test]
fn the_newest_row_of_an_id_counts_and_the_older_ones_are_named() {
    let spec = spec(Mode::SealedIndex, Precision::Standard, Scheme::Lattice);
    let mut both = Owned::new(&Keys::from_master([7; 32]), &spec, &RotationState::default());
    let own = both.owner.seal(&random(3, 1), &ids(0..3)).unwrap();
    both.directory.add(&both.owner, own.id, &own.sidecar, &[]).unwrap();
    both.server.add(AlignedBytes::from_slice(&own.segment)).unwrap();
    let first = written(&both.writer("front"), 2, 2..5);
    let second = written(&both.writer("back"), 3, 4..6);
    both.take(&first);
    both.take(&second);
    let shadowed: Vec<_> = both.directory.shadowed().collect();
    assert_eq!(shadowed, [(own.id, 2), (first.sealed.id, 2)]);
    assert_eq!(both.directory.len(), 6);
    let (two, four) = (random(3, 2)[..DIMENSION].to_vec(), random(2, 3)[..DIMENSION].to_vec());
    assert_eq!(both.nearest(&two)[0].0, Id::Number(2));
    let hits = both.nearest(&four);
    assert_eq!((&hits[0].0, hits.len()), (&Id::Number(4), 6));
    // The owner's own segments still refuse to share an id among themselves.
    let again = both.owner.seal(&random(1, 9), &ids(0..1)).unwrap();
    let refused = both.directory.add(&both.owner, again.id, &again.sidecar, &[]);
    assert!(matches!(refused, Err(Error::DuplicateId(Id::Number(0)))));
    // An owner's later row takes an id over from a writer.
    let later = both.owner.seal(&random(1, 9), &ids(5..6)).unwrap();
    both.directory.add(&both.owner, later.id, &later.sidecar, &[]).unwrap();
    assert_eq!(both.directory.locate(&Id::Number(5)), Some((later.id, 0)));
    assert_eq!(both.directory.shadowed().count(), 3);
    assert!(both.directory.remove(first.sealed.id));
    assert_eq!(both.directory.shadowed().count(), 2);
    both.directory.settle();
    assert_eq!(both.directory.shadowed().count(), 0);
}

#[test]
fn a_segment_that_does_not_open_is_passed_over() {
    for (mode, scheme) in [
        (Mode::SealedIndex, Scheme::Lattice),
        (Mode::Sealed, Scheme::Lattice),
        (Mode::SealedIndex, Scheme::ElGamal),
    ] {
        let spec = spec(mode, Precision::Standard, scheme);
        let mut both = Owned::new(&Keys::from_master([7; 32]), &spec, &RotationState::default());
        let writer = both.writer("door");
        let (good, bad) = (written(&writer, 1, 0..3), written(&writer, 2, 3..6));
        both.take(&good);
        both.server.add(AlignedBytes::from_slice(&bad.sealed.segment)).unwrap();
        let sidecar = &bad.sealed.sidecar;
        // The key of another segment, of another owner, and no key.
        let stranger = Owned::new(&Keys::from_master([8; 32]), &spec, &RotationState::default());
        let theirs = written(&stranger.writer("door"), 2, 3..6).wrap;
        for wrap in [&good.wrap, &theirs, &bad.wrap[..9].to_vec()] {
            let added = both.directory.add_written(&both.owner, bad.sealed.id, sidecar, wrap, &[]);
            assert!(added.is_err());
        }
        both.directory.refuse(bad.sealed.id);
        assert_eq!(both.nearest(&random(3, 1)[..DIMENSION]).len(), 3);
        assert_eq!(both.directory.refused(), [bad.sealed.id]);
        assert!(both.directory.remove(bad.sealed.id) && both.directory.refused().is_empty());
    }
}

/// A thief has the card and every byte that the writer made: nothing of it opens a segment, and two sealings of the same
/// rows have nothing in common.
#[test]
fn a_stolen_writer_opens_nothing_that_it_sealed() {
    let spec = spec(Mode::SealedIndex, Precision::Standard, Scheme::Lattice);
    let mut both = Owned::new(&Keys::from_master([7; 32]), &spec, &RotationState::default());
    let writer = both.writer("door");
    let (one, two) = (written(&writer, 1, 0..4), written(&writer, 1, 0..4));
    both.take(&one);
    let card = writer.card().to_bytes();
    // Every 32 bytes that a thief can cut out of them, as the key of everything.
    let loot = [&card[..], &one.wrap, &one.sealed.sidecar, &one.records.clone().unwrap()];
    for bytes in loot {
        for guess in bytes.windows(32).map(|bytes| bytes.try_into().unwrap()) {
            let thief = Owner::new(&Keys::from_master(guess), spec.clone()).unwrap();
            let known = WrappedKey::read(&spec, &one.wrap).unwrap();
            assert_ne!(thief.key_id(), known.owner);
            let mut directory = SegmentDirectory::new();
            let (id, sidecar) = (one.sealed.id, &one.sealed.sidecar);
            assert!(directory.add(&thief, id, sidecar, &[]).is_err());
            if bytes.len() < 400 {
                assert!(directory.add_written(&thief, id, sidecar, &one.wrap, &[]).is_err());
            }
        }
    }
    // The same rows sealed again: other names, keys and words; fewer bytes agree than chance would leave in a hundred.
    assert_ne!(one.sealed.id, two.sealed.id);
    let same = |a: &[u8], b: &[u8]| a.iter().zip(b).filter(|(a, b)| a == b).count();
    let words = |written: &WrittenSegment| written.sealed.segment[128..].to_vec();
    let (a, b) = (words(&one), words(&two));
    assert!(same(&a, &b) * 20 < a.len(), "{} of {}", same(&a, &b), a.len());
    assert!(same(&one.wrap[154..], &two.wrap[154..]) * 20 < one.wrap.len());
    // The key of one segment does not open the other: neither its sidecar nor its rows.
    let swapped =
        both.directory.add_written(&both.owner, two.sealed.id, &two.sealed.sidecar, &one.wrap, &[]);
    assert!(swapped.is_err());
}

#[test]
fn a_card_that_was_changed_is_known_by_its_mark_and_its_fingerprint() {
    let spec = spec(Mode::Sealed, Precision::Standard, Scheme::Lattice);
    let both = Owned::new(&Keys::from_master([7; 32]), &spec, &RotationState::default());
    let thief = Owned::new(&Keys::from_master([8; 32]), &spec, &RotationState::default());
    let card = both.owner.writer_card("door", &[]).unwrap();
    assert_eq!(card, both.owner.writer_card("door", &[]).unwrap());
    assert_ne!(card.fingerprint(), both.owner.writer_card("gate", &[]).unwrap().fingerprint());
    // The thief's pair in the owner's card, with a checksum that fits.
    let (mut mixed, theirs) =
        (card.to_bytes(), thief.owner.writer_card("door", &[]).unwrap().to_bytes());
    let pair = 64 + 2 + 32..64 + 2 + 32 + 1216;
    mixed[pair.clone()].copy_from_slice(&theirs[pair]);
    let mut hasher = blake3::Hasher::new();
    hasher.update(&mixed[..32]).update(&mixed[64..]);
    mixed[32..64].copy_from_slice(hasher.finalize().as_bytes());
    let mixed = WriterCard::from_bytes(&mixed).unwrap();
    assert!(both.owner.knows_card(&card) && !both.owner.knows_card(&mixed));
    assert_ne!(mixed.fingerprint(), card.fingerprint());
    assert_eq!(card.fingerprint().len(), 32);
    let open = IndexSpec::new("plain", 4, Metric::Cosine, Mode::Open, Precision::Standard).unwrap();
    let owner = Owner::new(&Keys::from_master([7; 32]), open).unwrap();
    assert!(matches!(owner.writer_card("door", &[]), Err(Error::Choice { .. })));
    for name in ["", &"x".repeat(65)] {
        assert!(both.owner.writer_card(name, &[]).is_err());
    }
}

/// While keys are rotated segments lie under either; the masks stay, and so one server index holds both.
#[test]
fn two_keys_in_one_index_while_it_rotates() {
    for mode in [Mode::SealedIndex, Mode::SealedQuery, Mode::Sealed] {
        let spec = spec(mode, Precision::Standard, Scheme::Lattice);
        let (old, new) = (Keys::from_master([7; 32]), Keys::from_master([8; 32]));
        let before = Owned::new(&old, &spec, &RotationState::default());
        let first = before.owner.seal(&random(4, 1), &ids(0..4)).unwrap();
        let old_card = written(&before.writer("door"), 2, 4..7);
        let seed = *before.owner.mask_seed();
        let custody = RotationState { mask_seed: Some(seed), previous: Some(&old) };
        let mut both = Owned::new(&new, &spec, &custody);
        let second = both.owner.seal(&random(3, 3), &ids(7..10)).unwrap();
        for sealed in [&first, &second] {
            both.directory.add(&both.owner, sealed.id, &sealed.sidecar, &[]).unwrap();
            both.server.add(AlignedBytes::from_slice(&sealed.segment)).unwrap();
        }
        both.take(&old_card);
        assert_eq!(both.directory.origin(first.id), Some(&Origin::Previous));
        assert_eq!(both.directory.origin(second.id), Some(&Origin::Owner));
        let rows = [random(4, 1), random(3, 2), random(3, 3)].concat();
        for (name, row) in (0..).zip(rows.chunks_exact(DIMENSION)) {
            let hits = both.nearest(row);
            assert_eq!((hits.len(), &hits[0].0), (10, &Id::Number(name)), "{mode:?}");
        }
        let all = both.owner.unseal_rows(&first.segment, None, &both.directory).unwrap();
        assert_eq!(all.len(), 4 * DIMENSION);
        // Once it has ended the old key opens nothing of the new one's, and is not asked for.
        let custody = RotationState { mask_seed: Some(seed), previous: None };
        let after = Owned::new(&new, &spec, &custody);
        let mut directory = SegmentDirectory::new();
        assert!(directory.add(&after.owner, first.id, &first.sidecar, &[]).is_err());
        let (id, sidecar) = (old_card.sealed.id, &old_card.sealed.sidecar);
        assert!(directory.add_written(&after.owner, id, sidecar, &old_card.wrap, &[]).is_err());
        assert!(directory.add(&before.owner, second.id, &second.sidecar, &[]).is_err());
    }
}

/// What was consumed does not come back by being appended again; the rest of the index goes on.
#[test]
fn a_consumed_segment_is_refused_when_it_is_appended_again() {
    let mut both = Owned::new(
        &Keys::from_master([7; 32]),
        &spec(Mode::SealedIndex, Precision::Standard, Scheme::Lattice),
        &RotationState::default(),
    );
    let writer = both.writer("door");
    let (old, new) = (written(&writer, 2, 0..3), written(&writer, 3, 3..5));
    let mut consumed = Consumed::default();
    consumed.add(both.owner.written(old.sealed.id, &old.wrap).unwrap());
    both.directory.expect_unconsumed(consumed);
    let append = |directory: &mut SegmentDirectory, made: &WrittenSegment, standing| {
        let (sidecar, wrap) = (made.sealed.sidecar.as_slice(), Some(made.wrap.as_slice()));
        let stored = StoredSidecar { sidecar, wrap, deleted: &[], aside: &[] };
        directory.attach_stored(&both.owner, made.sealed.id, &stored, standing)
    };
    let refused = append(&mut both.directory, &old, Standing::Appended).unwrap_err();
    assert!(matches!(refused, Error::Consumed { .. }), "{refused}");
    append(&mut both.directory, &new, Standing::Appended).unwrap();
    assert_eq!(both.directory.len(), 2);
    // What the owner's state counts is the owner's word.
    append(&mut both.directory, &old, Standing::Stored).unwrap();
    assert_eq!(both.directory.len(), 5);
}
