//! Frames between the bot and its vault process. A frame is a version, a length, and items in
//! postcard's encoding. It carries the items that wait at that moment, as far as they fit.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use zeroize::{Zeroize, Zeroizing};

/// Version of frames and items. Both sides are the same program, so any other version is a bug.
const VERSION: u8 = 1;
/// Bytes of version and length.
const HEAD: usize = 5;
/// Largest frame without its head, bytes.
pub const MAX_FRAME: usize = 1 << 20;

/// Encodes an item.
///
/// Errors: the item is larger than a frame.
pub fn encode(item: &impl Serialize) -> io::Result<Vec<u8>> {
    let bytes = postcard::to_stdvec(item).map_err(invalid)?;
    if bytes.len() > MAX_FRAME { Err(invalid("an item is larger than a frame")) } else { Ok(bytes) }
}

/// Reads the next frame and decodes its items; `None` at the end of the stream.
///
/// Errors: the frame has another version, is too large or does not consist of whole items, or the
/// stream fails.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<Vec<T>>> {
    let mut head = [0; HEAD];
    if from.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[1..])?;
    let [version, length @ ..] = head;
    let length = u32::from_le_bytes(length) as usize;
    if version != VERSION || length > MAX_FRAME {
        return Err(invalid("a frame is of another version or too large"));
    }
    let mut bytes = Zeroizing::new(vec![0; length]);
    from.read_exact(&mut bytes)?;
    let (mut rest, mut items) = (bytes.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (item, left) = postcard::take_from_bytes(rest).map_err(invalid)?;
        items.push(item);
        rest = left;
    }
    Ok(Some(items))
}

fn invalid(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// The writing end, shared by threads. Items sent while a thread writes go together in the next
/// frame.
pub struct Sender<W> {
    waiting: Mutex<Vec<Vec<u8>>>,
    stream: Mutex<W>,
}

impl<W: Write> Sender<W> {
    /// A sender to a stream.
    pub fn new(stream: W) -> Sender<W> {
        Sender { waiting: Mutex::default(), stream: Mutex::new(stream) }
    }

    /// The stream.
    pub fn into_stream(self) -> W {
        self.stream.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends encoded items. When this returns, this thread or another one has written them, or has
    /// failed to.
    ///
    /// Errors: the stream fails. Items are lost then.
    pub fn send(&self, items: impl IntoIterator<Item = Vec<u8>>) -> io::Result<()> {
        lock(&self.waiting).extend(items);
        let mut stream = lock(&self.stream);
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        let mut frame = Zeroizing::new(vec![0; HEAD]);
        for mut item in waiting {
            if frame.len() + item.len() > HEAD + MAX_FRAME {
                write(&mut *stream, &mut frame)?;
            }
            frame.extend_from_slice(&item);
            item.zeroize();
        }
        if frame.len() > HEAD { write(&mut *stream, &mut frame) } else { Ok(()) }
    }
}

/// Fills in the head of a frame, writes the frame, and empties it except for the head.
fn write(stream: &mut impl Write, frame: &mut Vec<u8>) -> io::Result<()> {
    let length = u32::try_from(frame.len() - HEAD).map_err(invalid)?;
    frame[0] = VERSION;
    frame[1..HEAD].copy_from_slice(&length.to_le_bytes());
    stream.write_all(frame)?;
    stream.flush()?;
    frame.truncate(HEAD);
    Ok(())
}

/// Locks a mutex. A poisoned lock is accepted, because no holder leaves its data half changed.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(items: &[Vec<u8>]) -> Vec<u8> {
        let sender = Sender::new(Vec::new());
        sender.send(items.iter().map(|item| encode(item).unwrap())).unwrap();
        sender.stream.into_inner().unwrap()
    }

    #[test]
    fn items_that_wait_together_share_a_frame_and_a_full_frame_begins_another() {
        let small: Vec<Vec<u8>> = (0..100).map(|length| vec![7; length]).collect();
        let mut bytes = sent(&small);
        assert_eq!(read::<Vec<u8>>(&mut &bytes[..]).unwrap(), Some(small));
        let large = vec![vec![1; MAX_FRAME - 8], vec![2; 100], vec![3; MAX_FRAME - 8]];
        bytes = sent(&large);
        let mut rest = &bytes[..];
        let frames: Vec<_> = std::iter::from_fn(|| read::<Vec<u8>>(&mut rest).unwrap()).collect();
        assert_eq!(frames, [vec![large[0].clone()], vec![large[1].clone()], vec![large[2].clone()]]);
    }

    #[test]
    fn anything_but_a_frame_is_refused() {
        let good = sent(&[vec![1, 2, 3]]);
        let edit = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            read::<Vec<u8>>(&mut &bytes[..]).map_err(|error| error.kind())
        };
        assert_eq!(edit(0, 1), Ok(Some(vec![vec![1, 2, 3]])));
        assert_eq!(edit(0, 2), Err(io::ErrorKind::InvalidData), "another version");
        assert_eq!(edit(3, 0x20), Err(io::ErrorKind::InvalidData), "2 MiB");
        assert_eq!(edit(5, 9), Err(io::ErrorKind::InvalidData), "an item that ends outside of its frame");
        for cut in 1..good.len() {
            assert!(read::<Vec<u8>>(&mut &good[..cut]).is_err(), "{cut} bytes");
        }
        assert!(encode(&vec![0u8; MAX_FRAME]).is_err());
    }
}
