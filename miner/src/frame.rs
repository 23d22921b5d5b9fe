//! Frames between the processes of a bot: a length (4 bytes, little-endian), and an item in
//! postcard's encoding. The program's allocator clears their buffers.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};

/// Bytes of the length.
const HEAD: usize = 4;

/// Encodes an item as a frame.
///
/// Errors: the item has more than `most` bytes.
pub fn encode(item: &impl Serialize, most: usize) -> io::Result<Vec<u8>> {
    let mut frame = postcard::to_io(item, vec![0; HEAD]).map_err(invalid)?;
    let length = frame.len() - HEAD;
    if length > most {
        return Err(too_large(length));
    }
    frame[..HEAD].copy_from_slice(&u32::try_from(length).map_err(invalid)?.to_le_bytes());
    Ok(frame)
}

/// Encodes an item and writes its frame.
///
/// Errors: the item has more than `most` bytes; the stream fails.
pub fn write(to: &mut (impl Write + ?Sized), item: &impl Serialize, most: usize) -> io::Result<()> {
    to.write_all(&encode(item, most)?)?;
    to.flush()
}

/// Reads the next frame and decodes its item. Reads no byte after it. `None` at the end of the
/// stream, and for an empty frame.
///
/// Errors: the item has more than `most` bytes, or is another one; the stream fails.
pub fn read<T: DeserializeOwned>(from: &mut (impl Read + ?Sized), most: usize) -> io::Result<Option<T>> {
    let mut head = [0; HEAD];
    let begun = from.read(&mut head)?;
    if begun == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[begun..])?;
    let length = u32::from_le_bytes(head) as usize;
    if length == 0 {
        return Ok(None);
    }
    if length > most {
        return Err(too_large(length));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    match postcard::take_from_bytes(&bytes).map_err(invalid)? {
        (item, []) => Ok(Some(item)),
        _ => Err(invalid("there is more than one item in a frame")),
    }
}

fn too_large(length: usize) -> io::Error {
    invalid(format!("an item of {length} bytes is too large"))
}

fn invalid(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_as_they_were_written_and_anything_else_is_refused() {
        let item = vec![1u8, 2, 3];
        let mut bytes = Vec::new();
        write(&mut bytes, &item, 4).unwrap();
        write(&mut bytes, &item, 4).unwrap();
        let mut rest = &bytes[..];
        for expected in [Some(&item), Some(&item), None] {
            assert_eq!(read::<Vec<u8>>(&mut rest, 4).unwrap().as_ref(), expected);
        }
        assert_eq!(read::<Vec<u8>>(&mut &[0; HEAD][..], 4).unwrap(), None);
        let kind = |bytes: &[u8]| read::<Vec<u8>>(&mut &bytes[..], 4).unwrap_err().kind();
        let good = &bytes[..bytes.len() / 2];
        for (at, byte) in [(0, 5), (2, 1), (4, 9), (4, 2)] {
            let mut bytes = good.to_vec();
            bytes[at] = byte;
            assert_eq!(kind(&bytes), io::ErrorKind::InvalidData, "{at}");
        }
        for cut in 1..good.len() {
            assert_eq!(kind(&good[..cut]), io::ErrorKind::UnexpectedEof, "{cut} bytes");
        }
        assert!(encode(&item, 3).is_err());
    }
}
