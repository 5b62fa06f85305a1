//! Values in shared memory: a file without a name, as long as they are.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use aggregation::rank::{Values, bf16, f16};
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// Bytes that are converted at a time: they stay in the processor's cache.
const BLOCK: usize = 64 << 10;

/// How types are called.
pub fn dtype(values: &Values) -> &'static str {
    match values {
        Values::Floats(_) => "float32",
        Values::Float16s(_) => "float16",
        Values::Bfloat16s(_) => "bfloat16",
        Values::Integers(_) => "int32",
        Values::Int8s(_) => "int8",
    }
}

/// Bytes of a value of a type; `None` of one that is not summed.
pub fn width(dtype: &str) -> Option<u64> {
    match dtype {
        "float32" | "int32" => Some(4),
        "float16" | "bfloat16" => Some(2),
        "int8" => Some(1),
        _ => None,
    }
}

/// Memory for values, which can be passed on.
pub fn memory() -> io::Result<File> {
    // Sealing is not used: whoever can be sealed is such a memory, and no other file.
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    Ok(File::from(memfd_create(c"weir values", flags)?))
}

/// What was passed, if it is memory of at least so many bytes. Another file might never answer.
pub fn passed(fd: OwnedFd, bytes: u64) -> Result<File, String> {
    fcntl(fd.as_fd(), FcntlArg::F_GET_SEALS)
        .map_err(|_| "what was passed is no memory (memfd)".to_owned())?;
    let file = File::from(fd);
    let has = file.metadata().map_err(|error| error.to_string())?.len();
    match has < bytes {
        true => Err(format!(
            "the memory has {has} bytes, and the values take {bytes}"
        )),
        false => Ok(file),
    }
}

/// Writes values, from the memory's beginning on.
pub fn store(values: &Values, memory: &File) -> io::Result<()> {
    match values {
        Values::Floats(values) => write(values, memory, |value| value.to_ne_bytes()),
        Values::Float16s(values) => write(values, memory, |value| value.to_bits().to_ne_bytes()),
        Values::Bfloat16s(values) => write(values, memory, |value| value.to_bits().to_ne_bytes()),
        Values::Integers(values) => write(values, memory, |value| value.to_ne_bytes()),
        Values::Int8s(values) => write(values, memory, |value| value.to_ne_bytes()),
    }
}

/// Reads values of a type; an error of kind `InvalidInput` if it is none.
pub fn load(dtype: &str, length: usize, memory: &File) -> io::Result<Values> {
    Ok(match dtype {
        "float32" => Values::Floats(read(length, memory, f32::from_ne_bytes)?),
        "float16" => Values::Float16s(read(length, memory, |bytes| {
            f16::from_bits(u16::from_ne_bytes(bytes))
        })?),
        "bfloat16" => Values::Bfloat16s(read(length, memory, |bytes| {
            bf16::from_bits(u16::from_ne_bytes(bytes))
        })?),
        "int32" => Values::Integers(read(length, memory, i32::from_ne_bytes)?),
        "int8" => Values::Int8s(read(length, memory, i8::from_ne_bytes)?),
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    })
}

fn write<T: Copy, const N: usize>(
    values: &[T],
    memory: &File,
    bytes: impl Fn(T) -> [u8; N],
) -> io::Result<()> {
    let (mut block, mut at) = (Vec::with_capacity(BLOCK), 0);
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
    memory: &File,
    value: impl Fn([u8; N]) -> T,
) -> io::Result<Vec<T>> {
    let mut values = Vec::with_capacity(length);
    let (mut block, mut at) = (vec![0; BLOCK], 0);
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
    fn values_of_all_types_come_as_they_went() {
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
    fn other_files_are_no_memory() {
        let zero = File::open("/dev/zero").unwrap();
        assert!(passed(zero.into(), 0).unwrap_err().contains("no memory"));
    }
}
