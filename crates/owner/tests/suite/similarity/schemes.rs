//! The same answers from every scheme as from the one that hides nothing, bytes included.

use super::plain::Plain;
use super::rows::*;
use ciphervec_he_secret::additive::{Decrypt, Evaluate};
use ciphervec_he_secret::paillier::Noise;
use ciphervec_he_secret::{damgard_jurik, elgamal, okamoto_uchiyama, paillier};
use ciphervec_owner::Metric;
use ciphervec_owner::similarity::additive::{
    EncryptedScores, EncryptedVectors, GridPrecision, Layout, OwnerScores, OwnerVectors, Probes,
    Rerandomization, Vectors,
};

const D: usize = 19;

/// Encrypts on either side, scores, sends everything through bytes, and compares with plain integers.
fn check<K: Decrypt>(keys: &K, layouts: &[Layout], precisions: &[GridPrecision]) {
    let public = keys.public();
    let plain = Plain::new(public.message_bits());
    for &layout in layouts {
        for &precision in precisions {
            for (metric, count) in [(Metric::Cosine, 1), (Metric::L2, 9), (Metric::Hamming, 3)] {
                let name = format!("{layout:?} {precision:?} {metric:?} {count}");
                let spec = spec(D, metric, precision, layout);
                let gallery_rows = rows(metric, D, count, 11);
                let probe_rows = rows(metric, D, 2, 12);
                let vectors = Vectors::quantize(&spec, &gallery_rows).unwrap();
                let probes = Probes::quantize(&spec, &probe_rows).unwrap();
                let expected = score(
                    &plain,
                    &encrypt(&spec, &plain, &gallery_rows),
                    &probe_rows,
                    Rerandomization::Bare,
                );
                let by_owner = EncryptedVectors::encrypt_as_owner(&spec, keys, &vectors).unwrap();
                let by_public = EncryptedVectors::encrypt(&spec, public, &vectors).unwrap();
                for (gallery, rerandomization) in
                    [(by_owner, Rerandomization::Fresh), (by_public, Rerandomization::Bare)]
                {
                    let sent = gallery.to_bytes(public).unwrap();
                    let stored = EncryptedVectors::from_bytes(public, &sent).unwrap();
                    let answer = stored.score_with(public, &probes, rerandomization).unwrap();
                    let sent = answer.to_bytes(public).unwrap();
                    let answer = EncryptedScores::from_bytes(public, &sent).unwrap();
                    let opened = answer.open(keys).unwrap();
                    let values = opened.values(vectors.norms(), probes.norms()).unwrap();
                    let same = expected.values(vectors.norms(), probes.norms()).unwrap();
                    if layout != Layout::Horizontal || metric == Metric::Hamming {
                        assert_eq!(values, same, "{name}");
                    }
                    for (found, expected) in opened.cosines().iter().zip(expected.cosines()) {
                        // One unit of the grid may cross a rounding boundary.
                        assert!((found - expected).abs() <= 2f64.powi(-14), "{name}");
                    }
                    let joined = EncryptedVectors::append(&[&stored, &gallery]).unwrap();
                    let twice = joined.score(public, &probes).unwrap().open(keys).unwrap();
                    assert_eq!(twice.vectors(), 2 * count, "{name}");
                    if layout != Layout::Horizontal {
                        let cosines = twice.cosines();
                        assert_eq!(cosines[..count], expected.cosines()[..count], "{name}");
                        assert_eq!(cosines[count..2 * count], cosines[..count], "{name}");
                    }
                }
            }
        }
    }
}

#[test]
fn paillier() {
    for noise in [Noise::ShortExponent, Noise::Uniform, Noise::Subgroup] {
        let keys = paillier::insecure_generate(512, noise).unwrap();
        check(&keys, &LAYOUTS, &[GridPrecision::Standard]);
    }
    let keys = paillier::insecure_generate(512, Noise::ShortExponent).unwrap();
    check(&keys, &LAYOUTS, &[GridPrecision::Small, GridPrecision::High]);
}

#[test]
fn damgard_jurik() {
    check(&damgard_jurik::insecure_generate(256, 2).unwrap(), &LAYOUTS, &PRECISIONS);
    check(&damgard_jurik::insecure_generate(256, 3).unwrap(), &LAYOUTS, &[GridPrecision::High]);
}

#[test]
fn okamoto_uchiyama() {
    let keys = okamoto_uchiyama::insecure_generate(768, okamoto_uchiyama::Noise::Full).unwrap();
    check(&keys, &LAYOUTS, &[GridPrecision::Standard, GridPrecision::Small]);
    check(&keys, &[Layout::Elements], &[GridPrecision::High]);
}

#[test]
fn elgamal() {
    let keys = elgamal::SecretKey::generate().unwrap();
    check(&keys, &[Layout::Elements], &[GridPrecision::Small, GridPrecision::Standard]);
    for (layout, precision) in [
        (Layout::Elements, GridPrecision::High),
        (Layout::Lanes, GridPrecision::Small),
        (Layout::Horizontal, GridPrecision::Small),
    ] {
        let spec = spec(D, Metric::Cosine, precision, layout);
        let vectors = Vectors::quantize(&spec, &rows(Metric::Cosine, D, 1, 1)).unwrap();
        let error = EncryptedVectors::encrypt(&spec, keys.public(), &vectors).unwrap_err();
        assert!(error.to_string().contains("layout elements"), "{error}");
    }
}

#[test]
fn keys_are_not_mixed() {
    let (one, other) = (
        paillier::insecure_generate(256, Noise::ShortExponent).unwrap(),
        paillier::insecure_generate(256, Noise::ShortExponent).unwrap(),
    );
    let spec = spec(D, Metric::Cosine, GridPrecision::Standard, Layout::Lanes);
    let row = rows(Metric::Cosine, D, 1, 1);
    let vectors = Vectors::quantize(&spec, &row).unwrap();
    let probes = Probes::quantize(&spec, &row).unwrap();
    let gallery = EncryptedVectors::encrypt_as_owner(&spec, &one, &vectors).unwrap();
    let stranger = EncryptedVectors::encrypt_as_owner(&spec, &other, &vectors).unwrap();
    let bytes = gallery.to_bytes(one.public()).unwrap();
    let scores = gallery.score(one.public(), &probes).unwrap();
    let errors = [
        EncryptedVectors::from_bytes(other.public(), &bytes).unwrap_err(),
        EncryptedVectors::append(&[&gallery, &stranger]).unwrap_err(),
        gallery.score(other.public(), &probes).unwrap_err(),
        scores.open(&other).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("wrong key"), "{error}");
    }
}
