//! Bytes of keys and ciphertexts: read back, frozen by hash, refused when hostile.

use super::support::{Owner, RINGS, numbers, spec};
use ciphervec_he_secret::Error;
use ciphervec_he_secret::ckks::{
    Ciphertext, Entropy, EvaluationKeys, Evaluator, KeyPlan, Params, Plaintext, PublicKey, Ring,
    SecretKey, SeededCiphertext,
};
use std::sync::Arc;

/// Everything that is serialised, from fixed seeds.
struct Objects {
    params: Arc<Params>,
    secret: Vec<u8>,
    public: Vec<u8>,
    keys: Vec<u8>,
    seeded: Vec<u8>,
    ciphertext: Vec<u8>,
    product: Vec<u8>,
}

fn plan(ring: Ring) -> KeyPlan {
    let plan = KeyPlan::new().relinearise().rotations([1, -2]).at_level(1);
    if ring == Ring::Standard { plan.conjugate() } else { plan }
}

fn objects(ring: Ring) -> Objects {
    let params = Params::insecure_new(spec(ring, 2, 2)).unwrap();
    let mut entropy = Entropy::insecure_fixed(&[7; 32]);
    let key = SecretKey::from_seed(&params, &[8; 32]);
    let public = key.public_key_with(&mut entropy).unwrap();
    let keys = key.evaluation_keys_with(&plan(ring), &mut entropy).unwrap();
    let values: Vec<f64> = (0..64).map(|i| f64::from(i) / 64.0).collect();
    let plaintext = Plaintext::encode(&params, &values).unwrap();
    let seeded = key.encrypt_seeded_with(&plaintext, &mut entropy).unwrap();
    let ciphertext = public.encrypt_with(&plaintext, &mut entropy).unwrap();
    let evaluator = Evaluator::without_keys(params.clone());
    let product = evaluator.multiply(&seeded.clone().expand(), &seeded.clone().expand()).unwrap();
    Objects {
        secret: key.to_bytes().to_vec(),
        public: public.to_bytes(),
        keys: keys.to_bytes(),
        seeded: seeded.to_bytes(),
        ciphertext: ciphertext.to_bytes(),
        product: product.to_bytes(),
        params,
    }
}

type Decoder<'a> = Box<dyn Fn(&[u8]) -> bool + 'a>;

impl Objects {
    /// Names, bytes, and whether a decoder takes bytes and writes them back.
    fn all(&self) -> [(&'static str, &[u8], Decoder<'_>); 6] {
        let params = &self.params;
        let ciphertext = |bytes: &[u8]| {
            Ciphertext::from_bytes(params, bytes)
                .is_ok_and(|object| bytes[65] == 1 || object.to_bytes() == bytes)
        };
        [
            (
                "secret key",
                &self.secret,
                Box::new(|bytes| {
                    SecretKey::from_bytes(params, bytes).is_ok_and(|key| *key.to_bytes() == *bytes)
                }),
            ),
            (
                "public key",
                &self.public,
                Box::new(|bytes| {
                    PublicKey::from_bytes(params, bytes).is_ok_and(|key| key.to_bytes() == bytes)
                }),
            ),
            (
                "evaluation keys",
                &self.keys,
                Box::new(|bytes| {
                    EvaluationKeys::from_bytes(params, bytes)
                        .is_ok_and(|keys| keys.to_bytes() == bytes)
                }),
            ),
            ("seeded ciphertext", &self.seeded, Box::new(ciphertext)),
            ("ciphertext", &self.ciphertext, Box::new(ciphertext)),
            ("product", &self.product, Box::new(ciphertext)),
        ]
    }
}

#[test]
fn everything_reads_back_and_is_as_long_as_it_says() {
    for ring in RINGS {
        let objects = objects(ring);
        let params = &objects.params;
        for (name, bytes, decode) in objects.all() {
            assert!(decode(bytes), "{name}");
        }
        assert_eq!(objects.public.len(), PublicKey::bytes(params));
        assert_eq!(objects.keys.len(), plan(ring).bytes(params).unwrap());
        assert_eq!(objects.seeded.len(), SeededCiphertext::bytes_at(params, 2));
        assert_eq!(objects.ciphertext.len(), Ciphertext::bytes_at(params, 2, 1));
        assert_eq!(objects.product.len(), Ciphertext::bytes_at(params, 2, 2));
        let keys = EvaluationKeys::from_bytes(params, &objects.keys).unwrap();
        assert_eq!(keys.bytes(), objects.keys.len());
        assert!(keys.covers(&plan(ring)) && !keys.covers(&KeyPlan::new().rotations([5])));
        // The seed stands for c_1: little more than half.
        assert!(objects.seeded.len() < objects.ciphertext.len() / 2 + 100);
        let seeded = Ciphertext::from_bytes(params, &objects.seeded).unwrap();
        let key = SecretKey::from_bytes(params, &objects.secret).unwrap();
        let decrypted = key.decrypt(&seeded).unwrap().decode();
        assert!(decrypted.iter().enumerate().all(|(i, x)| (x - i as f64 / 64.0).abs() < 1e-8));
        let read = Params::from_bytes(&params.to_bytes()).unwrap();
        assert_eq!((&*read, read.spec()), (&**params, params.spec()));
    }
}

/// Formats of released versions never change: if this fails, the version must be raised and the old
/// reader kept.
#[test]
fn bytes_from_fixed_seeds_do_not_move() {
    for (ring, expected) in RINGS.into_iter().zip(HASHES) {
        let objects = objects(ring);
        let hashes =
            objects.all().map(|(_, bytes, _)| blake3::hash(bytes).to_hex()[..16].to_owned());
        assert_eq!(hashes, expected, "{}", ring.as_str());
    }
}

const HASHES: [[&str; 6]; 2] = [
    [
        "7282c669cbc40a90",
        "8d1950313508aeb9",
        "aff9da0d7a1fc4b5",
        "4ae7b3f34c2a3af8",
        "5c238e8497d15341",
        "ab7fed9318bd5e23",
    ],
    [
        "c7557367a4d4af28",
        "1f7d95132b1d10ab",
        "718a013353b42201",
        "25e554e9dc87c861",
        "6fcb05e95c21537c",
        "aebcf7850855757e",
    ],
];

#[test]
fn hostile_bytes_are_refused() {
    let objects = objects(Ring::Standard);
    for (name, bytes, decode) in objects.all() {
        // Every flipped bit of the front, where all fields stand, and cuts and additions at the
        // end.
        for bit in (0..bytes.len().min(160) * 8).step_by(3) {
            let mut damaged = bytes.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!decode(&damaged), "{name}, bit {bit}");
            // With a checksum that fits, all that is accepted is canonical: the decoder writes it
            // back.
            if bit >= 64 * 8 {
                refit(&mut damaged);
                let _ = decode(&damaged);
            }
        }
        for change in [-1i64, 1, 8] {
            let mut damaged = bytes.to_vec();
            damaged.resize((bytes.len() as i64 + change) as usize, 0);
            refit(&mut damaged);
            assert!(!decode(&damaged), "{name}, {change} bytes");
        }
    }
    // Residues at or above the prime.
    let mut damaged = objects.ciphertext.clone();
    let at = damaged.len() - 100;
    damaged[at..].fill(0xff);
    refit(&mut damaged);
    let error = Ciphertext::from_bytes(&objects.params, &damaged).unwrap_err();
    assert!(error.to_string().contains("not below the prime"), "{error}");
}

#[test]
fn objects_of_other_parameters_and_keys_are_refused() {
    let objects = objects(Ring::Standard);
    let other = Params::insecure_new(spec(Ring::Standard, 3, 2)).unwrap();
    assert!(matches!(
        Ciphertext::from_bytes(&other, &objects.ciphertext),
        Err(Error::Parameters { .. })
    ));
    let owner = Owner::new(Ring::Standard, 2, 2);
    let ciphertext = Ciphertext::from_bytes(&owner.params, &objects.ciphertext).unwrap();
    assert!(matches!(owner.key.decrypt(&ciphertext), Err(Error::WrongKey { .. })));
    let own = owner.encrypt(&numbers(&owner.params, 4, 1), 2);
    let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
    assert!(matches!(evaluator.add(&own, &ciphertext), Err(Error::WrongKey { .. })));
    let product = evaluator.multiply(&ciphertext, &ciphertext).unwrap();
    assert!(matches!(evaluator.relinearise(&product), Err(Error::WrongKey { .. })));
}

/// Length and checksum of a frame, made to fit.
fn refit(frame: &mut [u8]) {
    let length = frame.len() as u64 - 64;
    frame[24..32].copy_from_slice(&length.to_le_bytes());
    let mut hasher = blake3::Hasher::new();
    hasher.update(&frame[..32]).update(&frame[64..]);
    frame[32..64].copy_from_slice(hasher.finalize().as_bytes());
}
