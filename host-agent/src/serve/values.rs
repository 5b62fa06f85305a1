//! Values of operations in memory shared by daemon and client: an anonymous file. The list of partial chunks follows the sums.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use aggregation::job::WorkerSet;
use aggregation::rank::{Partial, Values, bf16, f16};
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// Number of bytes that are converted at a time: they fit the processor's cache.
const BLOCK: usize = 64 << 10;
/// Length in bytes of a chunk index or a contributor bitmap in the list of partial chunks.
const WORD: u64 = 8;

/// Name of the element type of these values.
pub fn dtype(values: &Values) -> &'static str {
    match values {
        Values::Floats(_) => "float32",
        Values::Float16s(_) => "float16",
        Values::Bfloat16s(_) => "bfloat16",
        Values::Integers(_) => "int32",
        Values::Int8s(_) => "int8",
    }
}

/// Length in bytes of a value of this element type; `None` if the type is not supported.
pub fn width(dtype: &str) -> Option<u64> {
    match dtype {
        "float32" | "int32" => Some(4),
        "float16" | "bfloat16" => Some(2),
        "int8" => Some(1),
        _ => None,
    }
}

/// Creates memory for values: an anonymous file that can be passed to another process.
pub fn memory() -> io::Result<File> {
    // Sealing itself is not used, but only memfds support it, which distinguishes them from other files.
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    Ok(File::from(memfd_create(c"weir values", flags)?))
}

/// Checks that another process's descriptor is a memfd of at least `bytes` bytes; reads of other files might block forever.
pub fn passed(fd: OwnedFd, bytes: u64) -> Result<File, String> {
    fcntl(fd.as_fd(), FcntlArg::F_GET_SEALS)
        .map_err(|_| "the passed descriptor is not memory (memfd)".to_owned())?;
    let file = File::from(fd);
    let has = file.metadata().map_err(|error| error.to_string())?.len();
    match has < bytes {
        true => Err(format!(
            "the memory has {has} bytes, but the values take {bytes}"
        )),
        false => Ok(file),
    }
}

/// Writes values to the beginning of the memory.
pub fn store(values: &Values, memory: &File) -> io::Result<()> {
    match values {
        Values::Floats(values) => write(values, 0, memory, |value| value.to_ne_bytes()),
        Values::Float16s(values) => write(values, 0, memory, |value| value.to_bits().to_ne_bytes()),
        Values::Bfloat16s(values) => {
            write(values, 0, memory, |value| value.to_bits().to_ne_bytes())
        }
        Values::Integers(values) => write(values, 0, memory, |value| value.to_ne_bytes()),
        Values::Int8s(values) => write(values, 0, memory, |value| value.to_ne_bytes()),
    }
}

/// Reads values of this element type from the memory; an error of kind `InvalidInput` if the type is not supported.
pub fn load(dtype: &str, length: usize, memory: &File) -> io::Result<Values> {
    Ok(match dtype {
        "float32" => Values::Floats(read(length, 0, memory, f32::from_ne_bytes)?),
        "float16" => Values::Float16s(read(length, 0, memory, |bytes| {
            f16::from_bits(u16::from_ne_bytes(bytes))
        })?),
        "bfloat16" => Values::Bfloat16s(read(length, 0, memory, |bytes| {
            bf16::from_bits(u16::from_ne_bytes(bytes))
        })?),
        "int32" => Values::Integers(read(length, 0, memory, i32::from_ne_bytes)?),
        "int8" => Values::Int8s(read(length, 0, memory, i8::from_ne_bytes)?),
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    })
}

/// Writes the list of partial chunks behind the sums, which have `sums_bytes` bytes.
pub fn store_partial(partial: &[Partial], sums_bytes: u64, memory: &File) -> io::Result<()> {
    let words = partial.iter().flat_map(
        |Partial {
             index,
             contributors,
         }| [*index as u64, contributors.0],
    );
    let words: Vec<u64> = words.collect();
    write(&words, sums_bytes, memory, u64::to_ne_bytes)
}

/// Reads the list of `count` partial chunks behind the sums. An error if the memory is shorter.
pub fn load_partial(count: u64, sums_bytes: u64, memory: &File) -> io::Result<Vec<Partial>> {
    // Do not trust the peer's count before allocating.
    let holds = memory.metadata()?.len().saturating_sub(sums_bytes) / (2 * WORD);
    if count > holds {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let words = read(2 * count as usize, sums_bytes, memory, u64::from_ne_bytes)?;
    let (pairs, _) = words.as_chunks::<2>();
    let partial = pairs.iter().map(|[index, contributors]| Partial {
        index: *index as usize,
        contributors: WorkerSet(*contributors),
    });
    Ok(partial.collect())
}

fn write<T: Copy, const N: usize>(
    values: &[T],
    mut at: u64,
    memory: &File,
    bytes: impl Fn(T) -> [u8; N],
) -> io::Result<()> {
    let mut block = Vec::with_capacity(BLOCK);
    for some in values.chunks(BLOCK / N) {
        block.clear();
        some.iter()
            .for_each(|value| block.extend_from_slice(&bytes(*value)));
        memory.write_all_at(&block, at)?;
        at += block.len() as u64;
    }
    Ok(())
}

fn read<T, const N: usize>(
    length: usize,
    mut at: u64,
    memory: &File,
    value: impl Fn([u8; N]) -> T,
) -> io::Result<Vec<T>> {
    let mut values = Vec::with_capacity(length);
    let mut block = vec![0; BLOCK];
    while values.len() < length {
        let some = (length - values.len()).min(BLOCK / N) * N;
        memory.read_exact_at(&mut block[..some], at)?;
        let (whole, _) = block[..some].as_chunks::<N>();
        values.extend(whole.iter().map(|bytes| value(*bytes)));
        at += some as u64;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_types_survive_a_round_trip() {
        let floats: Vec<f32> = (0..70_000).map(|value| value as f32 * -0.37).collect();
        let all = [
            Values::Floats(floats.clone()),
            Values::Floats(vec![f32::NEG_INFINITY, f32::MIN_POSITIVE / 2.0]),
            Values::Float16s(floats.iter().map(|value| f16::from_f32(*value)).collect()),
            Values::Bfloat16s(floats.iter().map(|value| bf16::from_f32(*value)).collect()),
            Values::Integers((-40_000..40_000).collect()),
            Values::Int8s((0..100_000).map(|value| value as i8).collect()),
        ];
        for values in all {
            let own = memory().unwrap();
            store(&values, &own).unwrap();
            let bytes = width(dtype(&values)).unwrap() * values.len() as u64;
            assert_eq!(own.metadata().unwrap().len(), bytes);
            let file = passed(own.into(), bytes).unwrap();
            assert_eq!(load(dtype(&values), values.len(), &file).unwrap(), values);
            assert!(load(dtype(&values), values.len() + 1, &file).is_err());
            assert!(
                passed(file.into(), bytes + 1)
                    .unwrap_err()
                    .contains("the values take")
            );
        }
        assert_eq!(width("float64"), None);
    }

    #[test]
    fn partial_chunks_are_listed_behind_the_sums() {
        let own = memory().unwrap();
        store(&Values::Int8s(vec![1; 5]), &own).unwrap();
        let partial = [(0, 3), (70_000, u64::MAX)].map(|(index, contributors)| Partial {
            index,
            contributors: WorkerSet(contributors),
        });
        store_partial(&partial, 5, &own).unwrap();
        assert_eq!(load_partial(2, 5, &own).unwrap(), partial);
        assert_eq!(load("int8", 5, &own).unwrap(), Values::Int8s(vec![1; 5]));
        for wild in [3, u64::MAX] {
            assert!(load_partial(wild, 5, &own).is_err());
        }
    }

    #[test]
    fn other_files_are_refused() {
        let zero = File::open("/dev/zero").unwrap();
        assert!(passed(zero.into(), 0).unwrap_err().contains("not memory"));
    }
}
