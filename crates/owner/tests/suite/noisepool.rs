//! Pool files: sealed, claimed by one process only, and gone before an element is used.

use ciphervec_he_secret::additive::{Decrypt, Messages};
use ciphervec_he_secret::factoring::NoisePool;
use ciphervec_he_secret::paillier::{self, Noise, SecretKey};
use ciphervec_owner::protect::noise_pool::{NoisePoolError, claim, save, sealing_key};
use std::fs;

fn filled(key: &SecretKey, count: usize) -> NoisePool {
    let pool = NoisePool::new(key);
    pool.fill(key, count).unwrap();
    pool
}

#[test]
fn a_pool_comes_back_once_and_leaves_nothing() {
    let key = paillier::insecure_generate(256, Noise::Subgroup).unwrap();
    let sealing = sealing_key(&key.to_bytes());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    assert!(matches!(claim(&path, &key, &sealing), Err(NoisePoolError::NotFound { .. })));
    save(&path, filled(&key, 5), &key, &sealing).unwrap();
    #[cfg(unix)]
    {
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
    // A pool is not overwritten.
    let refused = save(&path, filled(&key, 1), &key, &sealing);
    assert!(matches!(refused, Err(NoisePoolError::Exists { .. })));
    // By the public half too.
    let pool = claim(&path, key.public(), &sealing).unwrap();
    assert_eq!(pool.len(), 5);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(matches!(claim(&path, &key, &sealing), Err(NoisePoolError::NotFound { .. })));
    let table = pool.encrypt(key.public(), 1, 3, &Messages::from_i64(&[1, 2, 3])).unwrap();
    assert_eq!(key.decrypt(&table, 8).unwrap().to_i64(2), Some(3));
    // What is left is saved again.
    save(&path, pool, &key, &sealing).unwrap();
    assert_eq!(claim(&path, &key, &sealing).unwrap().len(), 2);
}

#[test]
fn a_wrong_secret_another_key_or_damage_leaves_the_file_in_place() {
    let [key, other] = [0, 1].map(|_| paillier::insecure_generate(256, Noise::Subgroup).unwrap());
    let sealing = sealing_key(&key.to_bytes());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    save(&path, filled(&key, 2), &key, &sealing).unwrap();
    let good = fs::read(&path).unwrap();
    let wrong = claim(&path, &key, &sealing_key(&other.to_bytes()));
    assert!(matches!(wrong, Err(NoisePoolError::Envelope(_))));
    let wrong = claim(&path, &other, &sealing).unwrap_err();
    assert!(matches!(&wrong, NoisePoolError::Scheme(ciphervec_he_secret::Error::WrongKey { .. })));
    for bit in 0..8 * good.len() {
        let mut damaged = good.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &damaged).unwrap();
        assert!(claim(&path, &key, &sealing).is_err(), "bit {bit}");
        assert!(path.exists());
    }
    for length in [0, 8, 19, 20, good.len() - 1] {
        fs::write(&path, &good[..length]).unwrap();
        assert!(claim(&path, &key, &sealing).is_err());
    }
    fs::write(&path, &good).unwrap();
    assert_eq!(claim(&path, &key, &sealing).unwrap().len(), 2);
    // Nothing of the noise stands in the file.
    let pool = filled(&key, 4);
    save(&path, pool, &key, &sealing).unwrap();
    let sealed = fs::read(&path).unwrap();
    let frame = claim(&path, &key, &sealing).unwrap().into_bytes(&key).unwrap();
    assert!(!sealed.windows(16).any(|window| window == &frame[80..96]));
}

#[test]
fn of_many_claims_at_once_one_succeeds() {
    let key = paillier::insecure_generate(256, Noise::Subgroup).unwrap();
    let sealing = sealing_key(&key.to_bytes());
    let folder = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let path = folder.path().join(format!("pool-{round}"));
        save(&path, filled(&key, 1), &key, &sealing).unwrap();
        let won = std::thread::scope(|scope| {
            let claims: Vec<_> =
                (0..4).map(|_| scope.spawn(|| claim(&path, &key, &sealing).is_ok())).collect();
            claims.into_iter().filter_map(|claim| claim.join().unwrap().then_some(())).count()
        });
        assert_eq!(won, 1);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
