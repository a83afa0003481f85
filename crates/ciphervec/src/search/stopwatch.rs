//! Stopwatch: the seconds that a piece of work takes. WebAssembly alone has no clock: there it stands at zero, and whoever
//! wants times takes those of the page. Both sides.

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod running {
    use std::time::Instant;

    /// Runs since it was made.
    pub struct Stopwatch(Instant);

    impl Stopwatch {
        pub fn start() -> Self {
            Stopwatch(Instant::now())
        }

        pub fn seconds(&self) -> f64 {
            self.0.elapsed().as_secs_f64()
        }
    }
}

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod running {
    /// Stands still.
    pub struct Stopwatch;

    impl Stopwatch {
        pub fn start() -> Self {
            Stopwatch
        }

        pub fn seconds(&self) -> f64 {
            0.0
        }
    }
}

pub use running::Stopwatch;
