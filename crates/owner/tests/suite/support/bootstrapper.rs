//! A bootstrapper in a small ring that is not secure, for tests.

use ciphervec_he_secret::ckks::{BootstrapSpec, Bootstrapper};
use std::sync::{Arc, LazyLock};

/// 512 slots, and five levels between two refreshes: for a table of up to 62 values, degree 31.
pub static SMALL: LazyLock<Arc<Bootstrapper>> = LazyLock::new(|| {
    let spec = BootstrapSpec {
        log_degree: 10,
        log_slots: 9,
        levels: 5,
        scale_bits: 45,
        slots_to_coefficients: 2,
        slots_to_coefficients_bits: 42,
        reduction_bits: 49,
        reduction_top_bits: 49,
        coefficients_to_slots: 3,
        coefficients_to_slots_bits: 48,
        special_primes: 4,
        special_bits: 50,
        digits: 6,
        ..BootstrapSpec::degree_65536()
    };
    Arc::new(Bootstrapper::insecure_new(spec).expect("the sizes fit each other"))
});
