//! Every released format of the additively homomorphic schemes loads forever: keys, ciphertexts, encrypted vectors,
//! scores, probes, key files and noise pools under `vectors/` open, decrypt to what they did, and what is written
//! without randomness does not move by a bit.
//!
//! `CIPHERVEC_WRITE_VECTORS=1 cargo test -p ciphervec --test suite vectors_additive::` writes folders that are missing.

use ciphervec_he_secret::additive::{Decrypt, Evaluate, Messages, Table};
use ciphervec_he_secret::elgamal::shared_noise::{SharedNoiseKey, SharedNoiseTable};
use ciphervec_he_secret::factoring::{Ciphertexts, FactoringKey, NoisePool, NoiseSource};
use ciphervec_he_secret::{damgard_jurik, elgamal, okamoto_uchiyama, paillier};
use ciphervec_owner::Metric;
use ciphervec_owner::protect::keyfile::{self, MIN_LOG_N, Protection, Sort};
use ciphervec_owner::protect::noise_pool;
use ciphervec_owner::similarity::additive::{
    EncryptedScores, EncryptedVectors, GridPrecision, Layout, OwnerScores, Probes, Rerandomization,
    VectorSpec, Vectors,
};
use std::error::Error;
use std::fs;
use std::path::PathBuf;

type Outcome = Result<(), Box<dyn Error>>;

const PASSPHRASE: &str = "published, too";
const DIMENSION: usize = 11;
const PROBES: usize = 2;
/// Elements of a noise pool.
const POOLED: usize = 3;

/// A folder of files: reads them, and writes them when it was missing and is to be made.
struct Folder {
    path: PathBuf,
    writing: bool,
}

impl Folder {
    fn new(name: &str) -> Self {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/v1/additive");
        let path = PathBuf::from(root).join(name);
        let asked = std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some();
        Folder { writing: asked && !path.exists(), path }
    }

    fn get(&self, file: &str) -> Result<Vec<u8>, Box<dyn Error>> {
        let path = self.path.join(file);
        fs::read(&path).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    fn put(&self, file: &str, bytes: &[u8]) -> Outcome {
        let path = self.path.join(file);
        fs::create_dir_all(path.parent().ok_or("a file lies in a folder")?)?;
        Ok(fs::write(path, bytes)?)
    }
}

/// A secret key that is read and written.
trait Stored: Decrypt + Sized {
    fn read(bytes: &[u8]) -> ciphervec_he_secret::Result<Self>;
    fn bytes(&self) -> Vec<u8>;
    fn read_public(bytes: &[u8]) -> ciphervec_he_secret::Result<Self::Public>;
    fn public_bytes(public: &Self::Public) -> Vec<u8>;
}

macro_rules! stored {
    ($scheme:ident, $read:ident) => {
        impl Stored for $scheme::SecretKey {
            fn read(bytes: &[u8]) -> ciphervec_he_secret::Result<Self> {
                Self::$read(bytes)
            }
            fn bytes(&self) -> Vec<u8> {
                self.to_bytes().to_vec()
            }
            fn read_public(bytes: &[u8]) -> ciphervec_he_secret::Result<Self::Public> {
                $scheme::PublicKey::$read(bytes)
            }
            fn public_bytes(public: &Self::Public) -> Vec<u8> {
                public.to_bytes()
            }
        }
    };
}

// Paillier's keys are of the same type.
stored!(damgard_jurik, insecure_from_bytes);
stored!(okamoto_uchiyama, insecure_from_bytes);
stored!(elgamal, from_bytes);

/// Six messages of up to `bits` bits: small ones, the largest and the least.
fn messages(bits: u32) -> Messages {
    let mut messages = Messages::zeros(bits.div_ceil(64) as usize, 6);
    for (index, small) in [0, 1, -1i64, 77].into_iter().enumerate() {
        messages.row_mut(index).fill((small >> 63) as u64);
        messages.row_mut(index)[0] = small as u64;
    }
    for bit in 0..bits as usize - 1 {
        messages.row_mut(4)[bit / 64] |= 1 << (bit % 64);
    }
    // −m is ¬(m − 1), and m is odd.
    let negative: Vec<u64> = messages.row(4).iter().map(|word| !word).collect();
    messages.row_mut(5).copy_from_slice(&negative);
    messages.row_mut(5)[0] |= 1;
    messages
}

/// Messages of any width as words of one width.
fn words(messages: &Messages) -> Vec<Vec<u64>> {
    let extended = |index| {
        let sign = if messages.is_negative(index) { u64::MAX } else { 0 };
        let mut row = messages.row(index).to_vec();
        row.resize(64, sign);
        row
    };
    (0..messages.len()).map(extended).collect()
}

/// Keys, key files, and a table of two rows and three columns with messages of `bits` bits. `make` makes a key where
/// none is stored.
fn check_keys<K: Stored>(
    folder: &Folder,
    make: impl FnOnce() -> ciphervec_he_secret::Result<K>,
    bits: u32,
) -> Result<K, Box<dyn Error>> {
    let label = |key: &K| {
        let mut label = [0; 16];
        label[..8].copy_from_slice(&key.public().key_id().0);
        label
    };
    let encode =
        |key: &K, how| keyfile::encode_secret(&key.bytes(), Sort::Scheme, &label(key), how);
    if folder.writing {
        let key = make()?;
        folder.put("secret-key", &key.bytes())?;
        folder.put("public-key", &K::public_bytes(key.public()))?;
        folder.put("plain.key", &encode(&key, Protection::Plaintext)?)?;
        let cheap = Protection::PassphraseWithCost(PASSPHRASE, MIN_LOG_N);
        folder.put("encrypted.key", &encode(&key, cheap)?)?;
        let table = key.encrypt(2, 3, &messages(bits))?;
        folder.put("ciphertexts", &key.public().table_to_bytes(&table))?;
    }
    let (secret, public) = (folder.get("secret-key")?, folder.get("public-key")?);
    let key = K::read(&secret)?;
    assert_eq!(key.bytes(), secret);
    assert_eq!(K::public_bytes(key.public()), public);
    assert_eq!(K::public_bytes(&K::read_public(&public)?), public);

    let plain = folder.get("plain.key")?;
    assert_eq!(*encode(&key, Protection::Plaintext)?, plain);
    for (file, passphrase) in [(plain, None), (folder.get("encrypted.key")?, Some(PASSPHRASE))] {
        let (found, named) = keyfile::decode_secret(&file, Sort::Scheme, passphrase)?;
        assert_eq!((&*found, named), (&secret, label(&key)));
    }

    let bytes = folder.get("ciphertexts")?;
    let table = K::read_public(&public)?.table_from_bytes(&bytes)?;
    assert_eq!((table.rows(), table.columns()), (2, 3));
    assert_eq!(words(&key.decrypt(&table, bits)?), words(&messages(bits)));
    assert_eq!(key.public().table_to_bytes(&table), bytes);
    Ok(key)
}

/// A pool of noise. Claiming takes the file away, so that of a copy is claimed.
fn check_pool<K: Stored + NoiseSource>(folder: &Folder, key: &K) -> Outcome
where
    K::Public: FactoringKey + Evaluate<Table = Ciphertexts>,
{
    let sealing = noise_pool::sealing_key(&key.bytes());
    if folder.writing {
        let pool = NoisePool::new(key);
        pool.fill(key, POOLED)?;
        noise_pool::save(&folder.path.join("noise-pool"), pool, key, &sealing)?;
    }
    let copies = tempfile::tempdir()?;
    let copy = copies.path().join("noise-pool");
    fs::write(&copy, folder.get("noise-pool")?)?;
    let pool = noise_pool::claim(&copy, key.public(), &sealing)?;
    assert_eq!(pool.len(), POOLED);
    let frame = pool.into_bytes(key)?;
    let pool = NoisePool::from_bytes(key, &frame)?;
    let table = pool.encrypt(key.public(), 1, POOLED, &Messages::from_i64(&[5, -6, 7]))?;
    let found = key.decrypt(&table, 8)?;
    assert_eq!([0, 1, 2].map(|at| found.to_i64(at)), [5, -6, 7].map(Some));
    assert_eq!(*NoisePool::from_bytes(key, &frame)?.into_bytes(key)?, *frame);
    Ok(())
}

/// What is compared: so many vectors with two probes.
struct Case {
    metric: Metric,
    precision: GridPrecision,
    layout: Layout,
    vectors: usize,
}

impl Case {
    fn rows(&self, count: usize, step: usize) -> Vec<f64> {
        let value = |at: usize| match self.metric {
            Metric::Hamming => [1.0, -1.0][at * at % 7 % 2],
            _ => (at * at % 29) as f64 - 13.5,
        };
        (1..=count * DIMENSION).map(|at| value(at * step)).collect()
    }

    /// The metric's values from the definitions, probe after probe, and how far from them an answer may be.
    fn truth(&self, spec: &VectorSpec) -> Vec<(f64, f64)> {
        let dot = |x: &[f64], q: &[f64]| x.iter().zip(q).map(|(x, q)| x * q).sum::<f64>();
        let bound = spec.error_bound().worst_case;
        let (rows, probes) = (self.rows(self.vectors, 1), self.rows(PROBES, 3));
        let compare = |q: &[f64], x: &[f64]| {
            let norms = (dot(x, x) * dot(q, q)).sqrt();
            match self.metric {
                Metric::Cosine => (dot(x, q) / norms, bound),
                Metric::InnerProduct => (dot(x, q), bound * norms),
                Metric::L2 => (dot(x, x) + dot(q, q) - 2.0 * dot(x, q), 2.0 * bound * norms),
                Metric::Hamming => ((DIMENSION as f64 - dot(x, q)) / 2.0, 0.0),
            }
        };
        let all = probes.chunks(DIMENSION);
        all.flat_map(|q| rows.chunks(DIMENSION).map(move |x| compare(q, x))).collect()
    }
}

fn close(found: &[f64], truth: &[(f64, f64)]) -> bool {
    let within = |(found, (truth, bound)): (&f64, &(f64, f64))| {
        // The truth is rounded as well.
        (found - truth).abs() <= bound + truth.abs() * f64::exp2(-45.0)
    };
    found.len() == truth.len() && found.iter().zip(truth).all(within)
}

/// Encrypted vectors, probes and two answers to them: the one with fresh noise as a server sends it, and the bare one,
/// which must not move by a bit.
fn check_vectors<K: Stored>(folder: &Folder, key: &K, case: &Case) -> Outcome {
    let Case { metric, precision, layout, vectors } = *case;
    let name = format!("{}-{}-{}", layout.as_str(), precision.as_str(), metric.as_str());
    let file = |what: &str| format!("{name}/{what}");
    let public = key.public();
    let spec = VectorSpec::new(DIMENSION as u32, metric, precision, layout)?;
    let rows = Vectors::quantize(&spec, &case.rows(vectors, 1))?;
    let asked = Probes::quantize(&spec, &case.rows(PROBES, 3))?;
    if folder.writing {
        let encrypted = EncryptedVectors::encrypt(&spec, public, &rows)?;
        folder.put(&file("vectors"), &encrypted.to_bytes(public)?)?;
        folder.put(&file("probes"), &asked.to_bytes())?;
        for (what, rerandomization) in
            [("scores", Rerandomization::Fresh), ("bare-scores", Rerandomization::Bare)]
        {
            let scores = encrypted.score_with(public, &asked, rerandomization)?;
            folder.put(&file(what), &scores.to_bytes(public)?)?;
        }
    }
    let bytes = folder.get(&file("vectors"))?;
    let encrypted = EncryptedVectors::from_bytes(public, &bytes)?;
    assert_eq!(encrypted.to_bytes(public)?, bytes, "{name}");
    assert_eq!((encrypted.spec(), encrypted.len()), (&spec, vectors), "{name}");
    let bytes = folder.get(&file("probes"))?;
    let probes = Probes::from_bytes(&bytes)?;
    assert_eq!((probes.to_bytes(), probes.len()), (bytes, PROBES), "{name}");

    let bare = encrypted.score_with(public, &probes, Rerandomization::Bare)?.to_bytes(public)?;
    assert_eq!(bare, folder.get(&file("bare-scores"))?, "{name}: the server's answer moved");
    let truth = case.truth(&spec);
    for bytes in [bare, folder.get(&file("scores"))?] {
        let scores = EncryptedScores::from_bytes(public, &bytes)?;
        assert_eq!(scores.to_bytes(public)?, bytes, "{name}");
        let opened = scores.open(key)?;
        let values = opened.values(rows.norms(), asked.norms())?;
        assert!(close(&values, &truth), "{name}: {values:?} {truth:?}");
    }
    Ok(())
}

#[test]
fn version_1_of_paillier_opens_as_it_did() -> Outcome {
    let folder = Folder::new("paillier");
    let make = || paillier::insecure_generate(512, paillier::Noise::Subgroup);
    let key = check_keys(&folder, make, 511)?;
    check_pool(&folder, &key)?;
    let lanes = Case {
        metric: Metric::Cosine,
        precision: GridPrecision::Standard,
        layout: Layout::Lanes,
        vectors: 17, // two blocks, the second one not full
    };
    check_vectors(&folder, &key, &lanes)?;
    let horizontal = Case {
        metric: Metric::L2,
        precision: GridPrecision::Small,
        layout: Layout::Horizontal,
        vectors: 3,
    };
    check_vectors(&folder, &key, &horizontal)
}

#[test]
fn version_1_of_the_other_noises_of_paillier_opens_as_it_did() -> Outcome {
    for (name, noise) in [
        ("paillier-uniform", paillier::Noise::Uniform),
        ("paillier-short-exponent", paillier::Noise::ShortExponent),
    ] {
        let folder = Folder::new(name);
        let key = check_keys(&folder, || paillier::insecure_generate(256, noise), 255)?;
        assert_eq!(key.public().noise_kind(), noise);
        check_pool(&folder, &key)?;
    }
    Ok(())
}

/// Keys that are not `insecure_` have other parameter ids and orders of another length.
#[test]
fn version_1_of_a_long_paillier_key_opens_as_it_did() -> Outcome {
    let folder = Folder::new("paillier-2048");
    let make = || paillier::generate_with(2048, paillier::Noise::Subgroup);
    check_keys(&folder, make, 2047)?;
    assert!(!paillier::SecretKey::from_bytes(&folder.get("secret-key")?)?.security().insecure);
    paillier::PublicKey::from_bytes(&folder.get("public-key")?)?;
    Ok(())
}

#[test]
fn version_1_of_damgard_jurik_opens_as_it_did() -> Outcome {
    let folder = Folder::new("damgard-jurik");
    let key = check_keys(&folder, || damgard_jurik::insecure_generate(256, 2), 511)?;
    assert_eq!(key.public().s(), 2);
    check_pool(&folder, &key)?;
    let lanes = Case {
        metric: Metric::InnerProduct,
        precision: GridPrecision::High,
        layout: Layout::Lanes,
        vectors: 6, // two blocks, the second one not full
    };
    check_vectors(&folder, &key, &lanes)
}

#[test]
fn version_1_of_okamoto_uchiyama_opens_as_it_did() -> Outcome {
    let folder = Folder::new("okamoto-uchiyama");
    let make = || okamoto_uchiyama::insecure_generate(512, okamoto_uchiyama::Noise::Full);
    let key = check_keys(&folder, make, 105)?;
    check_pool(&folder, &key)?;
    let elements = Case {
        metric: Metric::Cosine,
        precision: GridPrecision::Standard,
        layout: Layout::Elements,
        vectors: 1,
    };
    check_vectors(&folder, &key, &elements)?;
    let folder = Folder::new("okamoto-uchiyama-short");
    let make = || okamoto_uchiyama::insecure_generate(256, okamoto_uchiyama::Noise::Short);
    let key = check_keys(&folder, make, 20)?;
    check_pool(&folder, &key)
}

#[test]
fn version_1_of_elgamal_opens_as_it_did() -> Outcome {
    let folder = Folder::new("elgamal");
    let key = check_keys(&folder, elgamal::SecretKey::generate, 24)?;
    let elements = Case {
        metric: Metric::Hamming,
        precision: GridPrecision::Small,
        layout: Layout::Elements,
        vectors: 3,
    };
    check_vectors(&folder, &key, &elements)
}

/// Embeddings with one noise for all dimensions, and sums of them.
#[test]
fn version_1_of_elgamal_with_shared_noise_opens_as_it_did() -> Outcome {
    let folder = Folder::new("elgamal-shared");
    let key = SharedNoiseKey::from_seed(*b"a published key protects nothing", 3);
    let weights = [2, -3, 5];
    if folder.writing {
        let table = key.encrypt(2, &Messages::from_i64(&[1, 4, -2, 5, 3, -600]))?;
        folder.put("embeddings", &table.to_bytes())?;
        folder.put("sums", &table.weighted_sum_vartime(&weights)?.to_bytes())?;
    }
    let bytes = folder.get("embeddings")?;
    let table = SharedNoiseTable::from_bytes(key.key_id(), &bytes)?;
    assert_eq!((table.rows(), table.columns()), (3, 2));
    assert_eq!(table.to_bytes(), bytes);
    let bytes = folder.get("sums")?;
    assert_eq!(table.weighted_sum_vartime(&weights)?.to_bytes(), bytes);
    let sums = elgamal::Ciphertexts::from_bytes(key.key_id(), &bytes)?;
    let found = key.decrypt(&sums, &weights, 16)?;
    // 2 · 1 + 3 · 2 + 5 · 3 and 2 · 4 − 3 · 5 − 5 · 600.
    assert_eq!([found.to_i64(0), found.to_i64(1)], [Some(23), Some(-3007)]);
    Ok(())
}
