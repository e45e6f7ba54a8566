//! Writes lines on a thread of its own, so that a slow terminal or a full pipe
//! does not hold up those who log. What does not fit is dropped and counted.

use std::io::{self, Write};
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::Error;

/// So many bytes wait for a stream that does not move; more are dropped.
const CAPACITY: usize = 8 << 20;
/// So long a stream is left alone that does not block and takes nothing now.
const PAUSE: Duration = Duration::from_millis(10);
/// So long a flush waits for a stream that does not move.
const FLUSH: Duration = Duration::from_secs(2);

/// One stream. Clones write to the same.
#[derive(Clone, Debug)]
pub(super) struct Sink(Arc<Owner>);

/// Ends the thread with the last user of the sink.
#[derive(Debug)]
struct Owner(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// There may be something to write.
    work: Condvar,
    /// Something has been written.
    written: Condvar,
}

#[derive(Debug, Default)]
struct State {
    pending: Vec<u8>,
    dropped: u64,
    is_writing: bool,
    /// Those who wait for all of it to be written.
    n_flushing: usize,
    is_closed: bool,
}

/// When to write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffering {
    /// Bytes to gather first.
    pub(super) size: usize,
    /// How long to wait for them.
    pub(super) patience: Duration,
}

/// Makes the line that says how many lines were dropped.
pub(super) type Lament = Box<dyn Fn(u64) -> String + Send>;

impl Sink {
    pub(super) fn new(
        stream: Box<dyn Write + Send>,
        buffering: Buffering,
        lament: Lament,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared::default());
        let name = "log";
        let writer = shared.clone();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || write_all(&writer, stream, buffering, &lament))
            .map_err(|source| Error::Thread { name, source })?;
        Ok(Self(Arc::new(Owner(shared))))
    }

    /// Takes a line, with its end. Does not wait for the stream.
    pub(super) fn line(&self, line: &[u8]) {
        let Owner(shared) = &*self.0;
        let mut state = shared.state.lock();
        if state.pending.len() + line.len() > CAPACITY {
            state.dropped += 1;
            return;
        }
        state.pending.extend_from_slice(line);
        drop(state);
        shared.work.notify_one();
    }

    /// Waits until everything is written, [`FLUSH`] at the most.
    pub(super) fn flush(&self) {
        let Owner(shared) = &*self.0;
        let mut state = shared.state.lock();
        state.n_flushing += 1;
        shared.work.notify_one();
        let is_busy = |state: &mut State| state.is_writing || !state.pending.is_empty();
        shared.written.wait_while_for(&mut state, is_busy, FLUSH);
        state.n_flushing -= 1;
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.state.lock().is_closed = true;
        self.0.work.notify_one();
    }
}

fn write_all(
    shared: &Shared,
    mut stream: Box<dyn Write + Send>,
    buffering: Buffering,
    lament: &Lament,
) {
    let mut batch = Vec::new();
    loop {
        let mut state = shared.state.lock();
        shared.work.wait_while(&mut state, |s| s.pending.is_empty() && !s.is_closed);
        let is_early =
            |s: &mut State| s.pending.len() < buffering.size && s.n_flushing == 0 && !s.is_closed;
        if is_early(&mut state) {
            shared.work.wait_while_for(&mut state, is_early, buffering.patience);
        }
        if state.pending.is_empty() && state.is_closed {
            return;
        }
        mem::swap(&mut state.pending, &mut batch);
        let dropped = mem::take(&mut state.dropped);
        state.is_writing = true;
        drop(state);
        if dropped > 0 {
            batch.extend_from_slice(lament(dropped).as_bytes());
        }
        write(&mut *stream, &batch);
        batch.clear();
        // After a burst, the room goes back.
        batch.shrink_to(CAPACITY / 64);
        shared.state.lock().is_writing = false;
        shared.written.notify_all();
    }
}

/// Writes a batch. What a stream does not take that is closed or broken is lost:
/// it takes no complaint either.
fn write(stream: &mut dyn Write, mut batch: &[u8]) {
    while !batch.is_empty() {
        match stream.write(batch) {
            Ok(0) => return,
            Ok(n) => batch = &batch[n..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Whoever shares the stream has made it so, for them and for us.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(PAUSE),
            Err(_) => return,
        }
    }
    let _ = stream.flush();
}

/// A writer for one line.
impl Write for Sink {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.line(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
