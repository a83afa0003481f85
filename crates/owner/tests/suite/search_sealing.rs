//! Segments as the owner makes them: unsealed they are what was put in, and no two are alike.

use super::search::{MODES, random, signs};
use ciphervec_owner::search::Owner;
use ciphervec_owner::{Id, IndexSpec, Keys, Metric};

#[test]
fn unsealing_and_resealing_keeps_the_vectors() {
    let keys = Keys::generate().unwrap();
    for (mode, precision) in MODES {
        for metric in [Metric::Cosine, Metric::L2, Metric::Hamming] {
            let spec = IndexSpec::new("faces", 33, metric, mode, precision).unwrap();
            let owner = Owner::new(&keys, spec).unwrap();
            let rows =
                if metric == Metric::Hamming { signs(200, 33, 1) } else { random(200, 33, 1) };
            let ids: Vec<Id> = (0..200).map(Id::Number).collect();
            let sealed = owner.seal(&rows, &ids).unwrap();
            let back = owner.unseal(&sealed.segment, &sealed.sidecar).unwrap();
            for (row, back) in rows.chunks_exact(33).zip(back.chunks_exact(33)) {
                let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
                let scale = if metric == Metric::Cosine { 1.0 / norm } else { 1.0 };
                let worst =
                    row.iter().zip(back).map(|(x, y)| (x * scale - y).abs()).fold(0.0, f32::max);
                let limit = if metric == Metric::Hamming { 0.0 } else { 5e-4 * norm.max(1.0) };
                assert!(worst <= limit, "{mode:?} {precision:?} {metric:?}: {worst}");
            }
        }
    }
}

#[test]
fn sealing_twice_never_repeats_a_nonce_or_a_word() {
    let keys = Keys::generate().unwrap();
    for (mode, precision) in MODES.into_iter().filter(|(mode, _)| mode.encrypts_index()) {
        let spec = IndexSpec::new("faces", 64, Metric::Cosine, mode, precision).unwrap();
        let owner = Owner::new(&keys, spec).unwrap();
        let rows = random(100, 64, 1);
        let ids: Vec<Id> = (0..100).map(Id::Number).collect();
        let (one, two) = (owner.seal(&rows, &ids).unwrap(), owner.seal(&rows, &ids).unwrap());
        assert_ne!(one.id, two.id);
        let equal =
            one.segment[128..].iter().zip(&two.segment[128..]).filter(|(a, b)| a == b).count();
        // Independent bytes agree one time in 256.
        assert!(equal < (one.segment.len() - 128) / 64, "{equal} equal bytes");
    }
}
