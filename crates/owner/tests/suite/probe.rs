//! Probes without a key ask, owners open the answers: equal to what the owner itself would have asked. Hostile weights are refused.

use ciphervec_arith::AlignedBytes;
use ciphervec_arith::sample::Stream;
use ciphervec_owner::search::{
    Owner, Probe, Query, QueryOptions, Retrieval, SegmentDirectory, ServerIndex,
};
use ciphervec_owner::{Error, Id, IndexSpec, Keys, Metric, Mode, Precision, Scheme};

const DIMENSION: usize = 12;

fn random(rows: usize, seed: u8) -> Vec<f32> {
    let mut words = vec![0u64; rows * DIMENSION];
    Stream::new(&[seed; 32], 0).uniform_bits(24, &mut words);
    words.iter().map(|&word| word as f32 / 8_388_608.0 - 1.0).collect()
}

struct Three {
    owner: Owner,
    server: ServerIndex,
    directory: SegmentDirectory,
    probe: Probe,
}

fn three(metric: Metric, precision: Precision, scheme: Scheme) -> Three {
    let spec = IndexSpec::new("doors", DIMENSION as u32, metric, Mode::SealedIndex, precision);
    let spec = spec.unwrap().with_scheme(scheme, None).unwrap();
    let owner = Owner::new(&Keys::from_master([7; 32]), spec.clone()).unwrap();
    let mut server = ServerIndex::new(spec.clone()).unwrap();
    let mut public = None;
    if scheme == Scheme::ElGamal {
        owner.generate_key_pair().unwrap();
        public = Some(owner.public_key().unwrap());
        server.set_evaluation_keys(public.as_ref().unwrap()).unwrap();
    }
    let rows = gallery(metric);
    let ids: Vec<Id> = (0..6).map(Id::Number).collect();
    let sealed = owner.seal(&rows, &ids).unwrap();
    let mut directory = SegmentDirectory::new();
    directory.add(&owner, sealed.id, &sealed.sidecar, &[]).unwrap();
    server.add(AlignedBytes::from_slice(&sealed.segment)).unwrap();
    let probe = Probe::new(spec, public.as_deref()).unwrap();
    Three { owner, server, directory, probe }
}

fn gallery(metric: Metric) -> Vec<f32> {
    let rows = random(6, 1);
    if metric == Metric::Hamming { rows.iter().map(|x| x.signum()).collect() } else { rows }
}

impl Three {
    fn hits(&self, query: &Query) -> Vec<Vec<(Id, f64)>> {
        let response = self.server.evaluate(query.to_bytes()).unwrap();
        let ask = Retrieval::TopK(6);
        let opened = self.owner.open(query, &response.bytes, &self.directory, ask).unwrap();
        let pairs = |hits: &Vec<_>| {
            hits.iter()
                .map(|hit: &ciphervec_owner::search::Hit| (hit.id.clone(), hit.value))
                .collect()
        };
        opened.hits.iter().map(pairs).collect()
    }
}

#[test]
fn a_probe_asks_what_the_owner_would_ask() {
    for metric in [Metric::Cosine, Metric::Hamming] {
        for (precision, scheme) in [
            (Precision::Standard, Scheme::Lattice),
            (Precision::Small, Scheme::Lattice),
            (Precision::Wide, Scheme::Lattice),
            (Precision::Standard, Scheme::ElGamal),
        ] {
            let three = three(metric, precision, scheme);
            let rows = &gallery(metric)[..2 * DIMENSION];
            let bytes = three.probe.query(rows).unwrap();
            let own = three.owner.query(rows, &three.directory, QueryOptions::default()).unwrap();
            assert_eq!(bytes, own.to_bytes(), "{metric:?} {precision:?} {scheme:?}");
            let read = three.owner.read_query(&bytes).unwrap();
            let (found, expected) = (three.hits(&read), three.hits(&own));
            assert_eq!(found, expected);
            assert_eq!((&found[0][0].0, &found[1][0].0), (&Id::Number(0), &Id::Number(1)));
        }
    }
}

/// The frame with other body bytes and a checksum that fits.
fn forged(bytes: &[u8], edit: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let body = bytes.len() - DIMENSION * 4;
    edit(&mut bytes[body..]);
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..32]).update(&bytes[64..]);
    let digest = hasher.finalize();
    bytes[32..64].copy_from_slice(digest.as_bytes());
    bytes
}

#[test]
fn weights_that_no_unit_vector_has_are_refused() {
    let three = three(Metric::Cosine, Precision::Standard, Scheme::Lattice);
    let bytes = three.probe.query(&random(1, 1)).unwrap();
    assert_eq!(forged(&bytes, |_| ()), bytes);
    let weights = |values: [i32; DIMENSION]| {
        forged(&bytes, |body| {
            for (word, value) in body.chunks_exact_mut(4).zip(values) {
                word.copy_from_slice(&value.to_le_bytes());
            }
        })
    };
    let mut axis = [0; DIMENSION];
    axis[3] = 43_238; // 2^15.4, as a unit vector along one axis
    assert!(three.owner.read_query(&weights(axis)).is_ok());
    let (mut half, mut packed) = (axis, [0; DIMENSION]);
    half[3] /= 2;
    packed.iter_mut().enumerate().for_each(|(at, weight)| *weight = 1 << (2 * at));
    for bad in [[0; DIMENSION], half, packed, [43_238; DIMENSION], [i32::MIN; DIMENSION]] {
        let error = three.owner.read_query(&weights(bad)).unwrap_err();
        assert!(matches!(error, Error::Range { what: "the norm of a probe", .. }), "{error}");
    }
    let signs = self::three(Metric::Hamming, Precision::Standard, Scheme::Lattice);
    let bytes = signs.probe.query(&gallery(Metric::Hamming)[..DIMENSION]).unwrap();
    let unequal = forged(&bytes, |body| body[..4].copy_from_slice(&2i32.to_le_bytes()));
    let doubled = forged(&bytes, |body| {
        for word in body.as_chunks_mut::<4>().0 {
            *word = (2 * i32::from_le_bytes(*word)).to_le_bytes();
        }
    });
    assert!(signs.owner.read_query(&bytes).is_ok());
    assert!(signs.owner.read_query(&doubled).is_err());
    assert!(signs.owner.read_query(&unequal).is_err());
}

#[test]
fn an_answer_to_another_query_is_refused() {
    let three = three(Metric::Cosine, Precision::Standard, Scheme::Lattice);
    // Six rows have a check each.
    let refused = (2..60).filter(|&seed| {
        let read = three.owner.read_query(&three.probe.query(&random(1, seed)).unwrap()).unwrap();
        let other = three.probe.query(&random(1, seed + 100)).unwrap();
        let answer = three.server.evaluate(&other).unwrap();
        three.owner.open(&read, &answer.bytes, &three.directory, Retrieval::TopK(6)).is_err()
    });
    assert_eq!(refused.count(), 58);
}

#[test]
fn what_cannot_be_probed_is_said() {
    let spec = |mode, metric| {
        IndexSpec::new("doors", DIMENSION as u32, metric, mode, Precision::Standard).unwrap()
    };
    for mode in [Mode::Open, Mode::Sealed, Mode::SealedQuery] {
        assert!(matches!(
            Probe::new(spec(mode, Metric::Cosine), None),
            Err(Error::Choice { what: "the mode to probe", .. })
        ));
    }
    let sealed = spec(Mode::SealedIndex, Metric::Cosine);
    assert!(Probe::new(sealed.clone(), Some(&[])).is_err());
    let elgamal = sealed.clone().with_scheme(Scheme::ElGamal, None).unwrap();
    assert!(matches!(Probe::new(elgamal, None), Err(Error::NoPublicKey)));
    let probe = Probe::new(sealed, None).unwrap();
    assert!(probe.query(&[]).is_err());
    assert!(probe.query(&random(1, 1)[..DIMENSION - 1]).is_err());
    let l2 = Owner::new(&Keys::from_master([7; 32]), spec(Mode::SealedIndex, Metric::L2)).unwrap();
    let asked = Probe::new(l2.spec().clone(), None).unwrap().query(&random(1, 1)).unwrap();
    assert!(matches!(
        l2.read_query(&asked),
        Err(Error::Choice { what: "the metric of a probe", .. })
    ));
}
