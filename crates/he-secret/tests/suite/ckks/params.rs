//! Parameter sets: the security table, the choice for a depth, and the precision that it promises.

use super::support::{numbers, spec, zip};
use ciphervec_he_secret::Error;
use ciphervec_he_secret::ckks::{
    Evaluator, KeyPlan, Params, ParamsSpec, Plaintext, Ring, SecretKey,
};
use ciphervec_he_secret::params::{Security, max_log_modulus};
use std::sync::Arc;

const SPEC: ParamsSpec = ParamsSpec {
    log_degree: 13,
    ring: Ring::Standard,
    base_bits: 50,
    scale_bits: 40,
    levels: 2,
    special_primes: 1,
    special_bits: 50,
    digits: 3,
    security: Security::Classical128,
};

#[test]
fn a_modulus_over_the_table_is_refused() {
    let params = Params::new(SPEC).unwrap();
    assert!(params.log_key_modulus() <= 181 && !params.security().insecure);
    assert!(params.log_key_modulus() <= max_log_modulus(1 << 13, Security::Classical128).unwrap());
    for (levels, expected) in [(3, 214), (4, 214)] {
        let wide = ParamsSpec { levels, special_primes: 2, digits: 3, ..SPEC };
        let Err(Error::Insecure { limit, .. }) = Params::new(wide) else {
            panic!("{levels} levels were accepted");
        };
        assert_eq!(limit, expected);
    }
    let quantum =
        ParamsSpec { security: Security::Quantum128, log_degree: 12, levels: 0, digits: 1, ..SPEC };
    assert!(Params::new(quantum).is_ok());
    assert!(matches!(
        Params::new(ParamsSpec { base_bits: 50, scale_bits: 20, levels: 1, digits: 2, ..quantum }),
        Err(Error::Insecure { limit: 101, .. })
    ));
    // Test sets are marked in their name and their id.
    let test = Params::insecure_new(SPEC).unwrap();
    assert_ne!(test.param_id(), params.param_id());
    assert!(test.is_insecure() && test.explain().contains("INSECURE"));
    assert!(matches!(Params::new(spec(Ring::Standard, 2, 2)), Err(Error::Range { .. })));
}

/// 104 bits at degree 2^12 are within the classical column, 106, and over the quantum one, 101.
#[test]
fn post_quantum_is_said_within_that_column_only() {
    let between = ParamsSpec {
        log_degree: 12,
        scale_bits: 27,
        levels: 2,
        special_primes: 0,
        digits: 1,
        ..SPEC
    };
    let params = Params::new(between).unwrap();
    assert!((102..=106).contains(&params.log_key_modulus()));
    assert!(!params.security().post_quantum);
    let within = Params::new(ParamsSpec { levels: 1, ..between }).unwrap();
    assert!(within.security().post_quantum);
    assert!(!Params::insecure_new(SPEC).unwrap().security().post_quantum);
}

#[test]
fn sizes_that_nothing_serves_are_refused() {
    for bad in [
        ParamsSpec { log_degree: 18, ..SPEC },
        ParamsSpec { base_bits: 51, ..SPEC },
        ParamsSpec { scale_bits: 50, ..SPEC },
        ParamsSpec { scale_bits: 19, ..SPEC },
        ParamsSpec { base_bits: 39, ..SPEC },
        ParamsSpec { special_bits: 51, ..SPEC },
        ParamsSpec { special_primes: 17, ..SPEC },
        ParamsSpec { digits: 0, ..SPEC },
        ParamsSpec { digits: 4, ..SPEC },
        ParamsSpec { digits: 1, ..SPEC },
        ParamsSpec { levels: 64, ..SPEC },
    ] {
        assert!(matches!(Params::new(bad), Err(Error::Range { .. })), "{bad:?}");
    }
}

#[test]
fn the_smallest_ring_is_chosen_and_the_reason_said() {
    for (ring, depth, precision, log_degree) in [
        (Ring::Standard, 1, 20, 13),
        (Ring::Standard, 3, 20, 13),
        (Ring::ConjugateInvariant, 1, 20, 13),
        (Ring::Standard, 10, 24, 15),
        (Ring::Standard, 24, 24, 16),
    ] {
        let params = Params::for_depth_in(ring, depth, precision, Security::Classical128).unwrap();
        let spec = params.spec();
        assert_eq!((spec.log_degree, spec.levels), (log_degree, depth), "{}", params.explain());
        let limit = max_log_modulus(params.degree(), Security::Classical128).unwrap();
        assert!(params.log_key_modulus() <= limit);
        let said = params.explain();
        for part in ["chosen for", "no smaller", &format!("limit {limit}"), "fewest transforms"] {
            assert!(said.contains(part), "{part:?} is not in {said}");
        }
    }
    let security = Security::Classical128;
    assert!(matches!(
        Params::for_depth(3, 40, security),
        Err(Error::Range { what: "the precision", .. })
    ));
    assert!(matches!(
        Params::for_depth(63, 24, security).map(|_| ()),
        Ok(()) | Err(Error::Range { .. })
    ));
}

#[test]
fn a_chosen_set_is_as_precise_as_was_asked() {
    for ring in [Ring::Standard, Ring::ConjugateInvariant] {
        let (depth, precision) = (2, 22);
        let params = Params::for_depth_in(ring, depth, precision, Security::Classical128).unwrap();
        let key = SecretKey::generate(&params).unwrap();
        let public = key.public_key().unwrap();
        let keys = key.evaluation_keys(&KeyPlan::new().relinearise()).unwrap();
        let evaluator = Evaluator::new(Arc::new(keys));
        let x = numbers(&params, params.max_slots(), 9);
        let mut product = public.encrypt(&Plaintext::encode_complex(&params, &x).unwrap()).unwrap();
        let mut expected = x;
        for _ in 0..depth {
            product = evaluator.mul(&product, &product).unwrap();
            expected = zip(&expected, &expected, |a, b| a * b);
        }
        let actual = key.decrypt(&product).unwrap().decode_complex();
        let errors = actual.iter().zip(&expected).map(|(a, b)| (*a - *b).norm());
        let square: f64 = errors.map(|error| error * error).sum::<f64>() / expected.len() as f64;
        assert!(square.sqrt() < f64::exp2(-f64::from(precision)), "{square}");
    }
}

#[test]
fn a_last_prime_of_its_own_leaves_a_small_scale() {
    let params = Params::with_last_prime(
        ParamsSpec { digits: 2, special_primes: 2, log_degree: 14, ..SPEC },
        50,
    );
    let params = params.unwrap();
    assert_eq!(params.last_bits(), Some(50));
    assert!(
        (params.scale(0).log2() - 30.0).abs() < 1e-3
            && (params.scale(1).log2() - 40.0).abs() < 1e-3
    );
    assert!((params.log_modulus(1) - 100.0).abs() < 0.1);
    let plain = Params::new(*params.spec()).unwrap();
    assert_ne!(plain.param_id(), params.param_id());
    let read = Params::from_bytes(&params.to_bytes()).unwrap();
    assert_eq!((&*read, read.last_bits()), (&*params, Some(50)));
    let key = SecretKey::generate(&params).unwrap();
    let keys = key.evaluation_keys(&KeyPlan::new().relinearise()).unwrap();
    let evaluator = Evaluator::new(Arc::new(keys));
    let x = numbers(&params, params.max_slots(), 9);
    let mut power = key.encrypt(&Plaintext::encode_complex(&params, &x).unwrap()).unwrap();
    let mut expected = x;
    for level in [1, 0] {
        power = evaluator.mul(&power, &power).unwrap();
        expected = zip(&expected, &expected, |a, b| a * b);
        assert_eq!((power.level(), power.scale()), (level, params.scale(level)));
    }
    let values = key.decrypt(&power).unwrap().decode_complex();
    assert!(values.iter().zip(&expected).all(|(a, b)| (a - b).norm() < 1e-3));
    for bad in [
        Params::with_last_prime(ParamsSpec { levels: 0, digits: 1, ..SPEC }, 50),
        Params::with_last_prime(SPEC, 51),
        Params::with_last_prime(ParamsSpec { scale_bits: 28, ..SPEC }, 50),
        Params::with_last_prime(ParamsSpec { digits: 2, special_primes: 1, ..SPEC }, 40),
    ] {
        assert!(matches!(bad, Err(Error::Range { .. })));
    }
}
