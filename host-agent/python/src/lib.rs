//! The native half of the Python package `weir`: a rank of an all-reduce (`host_agent::collective`).
//!
//! Values are passed by address: the Python half owns the tensors, and keeps them until it has waited for the sums.
#![allow(unsafe_code)]

mod link;
mod memory;
mod rank;

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aggregation::rank::{
    DROPS, EXACT_VALUES, LAYOUT, Reduction, Rounding, Share, Sums as RankSums, Terms, Values, bf16,
    f16,
};
use host_agent::collective::CollectiveError;
use host_agent::collective::Failure;
use host_agent::frames::Io;
use host_agent::metrics::Exporter;
use link::{Awaited, Link};
use memory::{Spare, copied, put, put_bytes, words};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use rank::Rank;

pyo3::create_exception!(
    weir,
    NonFinite,
    PyRuntimeError,
    "The values of a rank contained NaN or infinity, so no rank gets sums of the operation."
);

pyo3::create_exception!(
    weir,
    Silent,
    PyRuntimeError,
    "No switch answers for this job."
);

/// A rank of a job at an Ethernet interface, as Python uses it. Python may close it while other threads query it.
#[pyclass(frozen)]
struct Member {
    /// The attachment to the job; `None` once the rank was closed.
    member: Mutex<Option<Arc<Link>>>,
    ranks: u16,
    rounding: Rounding,
    spare: Arc<Spare>,
    /// I/O backend that the rank uses.
    io: Io,
    /// Notice with the error of the rings, if system calls are used because of it; otherwise `None`.
    refused: Option<String>,
    /// HTTP server of the rank's status and metrics; `None` if there is none.
    exporter: Mutex<Option<Exporter>>,
}

/// Kind of data written to Python's memory when an operation has finished.
#[derive(Clone, Copy)]
enum Writes {
    Sums,
    /// The bytes of a broadcast, whatever type they have in Python.
    Bytes,
    Nothing,
}

/// Handle of the sums of an operation in progress.
#[pyclass]
struct Sums {
    pending: Mutex<Option<Awaited>>,
    writes: Writes,
    spare: Arc<Spare>,
    ranks: u16,
}

#[pymethods]
impl Member {
    /// Sums or averages values over all ranks: `length` values of type `dtype` at `address`, which are copied before this
    /// returns. Values that come too late join the next sum of the same `key`, if the job has `late="next"`. With `takes`
    /// false, the rank only contributes its values; `root` is the rank that takes the sums, if not all do. `whole` is the
    /// length of the whole tensor, if the values are a piece of it.
    #[pyo3(signature = (address, length, dtype, average, key = None, takes = true, root = None, whole = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn all_reduce(
        &self,
        py: Python<'_>,
        address: usize,
        length: usize,
        dtype: &str,
        average: bool,
        key: Option<u64>,
        takes: bool,
        root: Option<u16>,
        whole: Option<u64>,
    ) -> PyResult<Sums> {
        // SAFETY: the caller guarantees `length` values of this type at this address, and keeps them while Python's lock is
        // held. Any bits are a value of each of these types.
        let values = unsafe {
            match dtype {
                "float32" => Values::Floats(copied(address, length, self.spare.take(length))?),
                "float16" => Values::Float16s(copied::<f16>(address, length, Vec::new())?),
                "bfloat16" => Values::Bfloat16s(copied::<bf16>(address, length, Vec::new())?),
                "int32" => Values::Integers(copied::<i32>(address, length, Vec::new())?),
                "int8" => Values::Int8s(copied::<i8>(address, length, Vec::new())?),
                _ => {
                    let told = format!(
                        "{dtype} is not supported: use float32, float16, bfloat16, int32 or int8"
                    );
                    return Err(PyValueError::new_err(told));
                }
            }
        };
        let (share, writes) = match takes {
            true => (Share::GivesAndTakes, Writes::Sums),
            false => (Share::Gives, Writes::Nothing),
        };
        let whole = whole.unwrap_or(length as u64);
        let deed = if average { "average" } else { "sum" };
        let reduction = Reduction {
            average,
            exact: whole <= EXACT_VALUES as u64,
            rounding: self.rounding,
            key,
            share,
            terms: Some(Terms::named(dtype, deed, root, whole)),
        };
        self.begin(py, values, reduction, writes)
    }

    /// Broadcasts `length` elements of type `dtype` from this rank (`root`) to all other ranks; the bytes are copied before
    /// this returns. All other ranks contribute zeros, so the bytes arrive unchanged.
    fn broadcast(
        &self,
        py: Python<'_>,
        address: usize,
        bytes: usize,
        dtype: &str,
        length: u64,
        root: u16,
    ) -> PyResult<Sums> {
        // SAFETY: the caller guarantees that many bytes at this address, and keeps them while Python's lock is held.
        let values = Values::Integers(unsafe { words(address, bytes)? });
        let reduction = Reduction {
            share: Share::Gives,
            terms: Some(Terms::named(dtype, "broadcast", Some(root), length)),
            ..Reduction::default()
        };
        self.begin(py, values, reduction, Writes::Nothing)
    }

    /// Receives `length` elements of type `dtype`, which the rank `root` broadcasts, as this many bytes.
    fn receive(
        &self,
        py: Python<'_>,
        bytes: usize,
        dtype: &str,
        length: u64,
        root: u16,
    ) -> PyResult<Sums> {
        let reduction = Reduction {
            share: Share::Takes,
            terms: Some(Terms::named(dtype, "broadcast", Some(root), length)),
            ..Reduction::default()
        };
        let values = Values::Integers(vec![0; bytes.div_ceil(size_of::<i32>())]);
        self.begin(py, values, reduction, Writes::Bytes)
    }

    /// Announces an operation that ranks perform without the switch, to compare its terms (type, length, …). The wait for it
    /// fails at all ranks if they announce different operations, or if some submit values to the switch.
    #[pyo3(signature = (dtype, deed, length, root = None))]
    fn compare(
        &self,
        py: Python<'_>,
        dtype: &str,
        deed: &str,
        length: u64,
        root: Option<u16>,
    ) -> PyResult<Sums> {
        let reduction = Reduction {
            share: Share::Compares,
            terms: Some(Terms::named(dtype, deed, root, length)),
            ..Reduction::default()
        };
        self.begin(py, Values::Integers(vec![0]), reduction, Writes::Nothing)
    }

    /// I/O backend that the rank uses: `rings`, `calls` or `pnet`.
    #[getter]
    fn io(&self) -> String {
        self.io.to_string()
    }

    /// Notice with the reason why the I/O backend is `calls`, if rings were wanted; otherwise `None`.
    #[getter]
    fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Maximum number of unanswered operations; a call that exceeds it blocks until one is answered.
    #[getter]
    fn operations(&self) -> u64 {
        self.link().map_or(0, |link| link.operations())
    }

    /// Number of times that the switch fell silent, so that the ranks summed instead. A daemon reports it with each sum.
    #[getter]
    fn fallbacks(&self) -> u64 {
        self.link().map_or(0, |link| link.fallbacks())
    }

    /// Leaves the job: operations in progress fail.
    fn close(&self, py: Python<'_>) {
        // The thread may stay for a moment, for sums that other ranks have missed.
        py.detach(|| {
            let link = taken(&self.member);
            if let Some(link) = &link {
                // Close the link first, since the exporter may be querying it.
                link.close();
            }
            drop((taken(&self.exporter), link));
        });
    }

    /// File descriptors that make this process a rank. A forked child closes them, and does nothing else with this object, not
    /// even drop it.
    #[getter]
    fn descriptors(&self) -> Vec<RawFd> {
        let link = self.member.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = self.exporter.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = shown.as_ref().map(Exporter::descriptor);
        let of_link = link.as_ref().map(|link| link.descriptors());
        of_link.into_iter().flatten().chain(shown).collect()
    }

    /// Address of the HTTP server of the rank's status and metrics; `None` if there is none.
    #[getter]
    fn metrics(&self) -> Option<String> {
        let exporter = self.exporter.lock().unwrap_or_else(PoisonError::into_inner);
        exporter.as_ref().map(|shown| shown.address().to_string())
    }

    /// Counters: operations with sums, operations without sums because of a value that is not finite; frames, bytes,
    /// retransmitted frames, probes, wrongly guessed exponents, timeouts; number of times that the switch fell silent, number
    /// of its returns, and chunks summed by ranks. Then, in jobs with deadlines: partial chunks; partial chunks without this
    /// rank's values; chunks with its values clipped; late or clipped chunks whose missing values join no later sum; sums that
    /// late values joined, and sums that they could not join; chunks that this rank closed, and chunks of which the switch had
    /// forgotten whether they were closed.
    fn counters(&self, py: Python<'_>) -> PyResult<[(&'static str, u64); 19]> {
        // A daemon may be slow to answer.
        let counters = py.detach(|| self.link().map(|link| link.counters()).transpose());
        let counters = counters.map_err(told)?.unwrap_or_default();
        Ok([
            ("operations", counters.operations),
            ("non_finite", counters.non_finite),
            ("frames", counters.sent.frames),
            ("bytes", counters.sent.bytes),
            ("frames_again", counters.sent.retransmitted_frames),
            ("probes", counters.probes),
            ("guessed_again", counters.repeated_guesses),
            ("timeouts", counters.timeouts),
            ("fallbacks", counters.fallbacks),
            ("returns", counters.returns),
            ("chunks_by_hosts", counters.by_hosts),
            ("partial", counters.partial_chunks),
            ("late", counters.late_chunks),
            ("clipped", counters.clipped_chunks),
            ("dropped", counters.dropped_chunks),
            ("carried", counters.carried),
            ("lost", counters.lost_residuals),
            ("closed", counters.closes),
            ("forgotten", counters.forgotten),
        ])
    }
}

#[pymethods]
impl Sums {
    /// Whether the sums, or their error, were returned. If [`wait`](Self::wait) raises before that, a signal's handler has raised.
    #[getter]
    fn is_over(&self) -> bool {
        let pending = self.pending.lock();
        pending.unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Waits for the sums and writes them to `address`, which has capacity for `length` values of the submitted type, or for
    /// the bytes of a broadcast; writes nothing if the rank takes none. Returns the error bound, and the smallest number of
    /// contributors of any chunk.
    fn wait(
        &self,
        py: Python<'_>,
        address: usize,
        length: usize,
        seconds: f64,
    ) -> PyResult<(f64, u16)> {
        let pending = self
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let mut pending =
            pending.ok_or_else(|| PyRuntimeError::new_err("these sums were already waited for"))?;
        let timeout = Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let ended = pending.wait(py, timeout).inspect_err(|_| {
            let mut kept = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            *kept = Some(pending);
        })?;
        let sums = ended.map_err(told)?;
        let contributors = self.fewest(&sums);
        // SAFETY: the caller guarantees capacity for `length` values of this type at this address, which nothing else accesses.
        unsafe {
            match (self.writes, &sums.values) {
                (Writes::Nothing, _) => {}
                (Writes::Bytes, Values::Integers(words)) => put_bytes(words, address, length)?,
                (_, Values::Floats(values)) => put(values, address, length)?,
                (_, Values::Float16s(values)) => put(values, address, length)?,
                (_, Values::Bfloat16s(values)) => put(values, address, length)?,
                (_, Values::Integers(values)) => put(values, address, length)?,
                (_, Values::Int8s(values)) => put(values, address, length)?,
            }
        }
        if let Values::Floats(values) = sums.values {
            self.spare.give(values);
        }
        Ok((sums.error_bound, contributors))
    }
}

/// Takes the value out of the mutex, which leaves `None`.
fn taken<T>(of: &Mutex<Option<T>>) -> Option<T> {
    of.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Member {
    /// The rank's attachment to its job; `None` once the rank was closed.
    fn link(&self) -> Option<Arc<Link>> {
        let member = self.member.lock();
        member.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn begin(
        &self,
        py: Python<'_>,
        values: Values,
        reduction: Reduction,
        writes: Writes,
    ) -> PyResult<Sums> {
        // With a daemon, this blocks if too many operations are unanswered, for which other threads wait.
        let pending = py.detach(|| {
            let link = self.link().ok_or(CollectiveError::Closed)?;
            link.all_reduce_as(values, reduction)
        });
        let pending = pending.map_err(told)?;
        Ok(Sums {
            pending: Mutex::new(Some(pending)),
            writes,
            spare: Arc::clone(&self.spare),
            ranks: self.ranks,
        })
    }
}

impl Sums {
    fn fewest(&self, sums: &RankSums) -> u16 {
        let partial = sums.partial.iter();
        let counts = partial.map(|partial| partial.contributors.len() as u16);
        counts.min().unwrap_or(self.ranks)
    }
}

fn told(error: CollectiveError) -> PyErr {
    match error {
        CollectiveError::Agent { kind, ref text } => match kind {
            Failure::NonFinite => NonFinite::new_err(text.clone()),
            Failure::Silent => Silent::new_err(text.clone()),
            Failure::Io => PyOSError::new_err(text.clone()),
            Failure::Refused | Failure::Failed => PyRuntimeError::new_err(text.clone()),
        },
        CollectiveError::Timeout { .. } | CollectiveError::Late { .. } => {
            PyTimeoutError::new_err(error.to_string())
        }
        CollectiveError::Opening(_) | CollectiveError::Unregistered { .. } => {
            Silent::new_err(error.to_string())
        }
        CollectiveError::NonFinite(_) => NonFinite::new_err(error.to_string()),
        CollectiveError::Io(_) | CollectiveError::Link(_) | CollectiveError::Rdma(_) => {
            PyOSError::new_err(error.to_string())
        }
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}

/// The native Python module `weir._native`.
#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Rank>()?;
    module.add_class::<Member>()?;
    module.add_class::<Sums>()?;
    // Ranks of other versions may send other frames.
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("LAYOUT", LAYOUT)?;
    module.add("EXACT_VALUES", EXACT_VALUES)?;
    module.add("DROPS", DROPS)?;
    module.add("Silent", module.py().get_type::<Silent>())?;
    module.add("NonFinite", module.py().get_type::<NonFinite>())
}
