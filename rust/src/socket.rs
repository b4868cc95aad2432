//! A connection of the network that knows whether it is dead and how many bytes have passed.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// What a socket knows of itself.
pub(crate) struct Activity {
    begun: Instant,
    moved: AtomicU64,
    /// When bytes last moved, in ms since `begun`.
    last: AtomicU64,
    dead: AtomicBool,
}

impl Activity {
    pub(crate) fn new() -> Arc<Activity> {
        Arc::new(Activity { begun: Instant::now(), moved: 0.into(), last: 0.into(), dead: false.into() })
    }

    pub(crate) fn moved(&self) -> u64 {
        self.moved.load(Relaxed)
    }

    pub(crate) fn last(&self) -> Instant {
        self.begun + Duration::from_millis(self.last.load(Relaxed))
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Relaxed)
    }

    pub(crate) fn kill(&self) {
        self.dead.store(true, Relaxed);
    }

    fn note(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Relaxed);
        self.last.store(self.begun.elapsed().as_millis() as u64, Relaxed);
    }
}

pub(crate) struct Socket<S> {
    pub(crate) stream: S,
    pub(crate) activity: Arc<Activity>,
}

impl<S> Drop for Socket<S> {
    fn drop(&mut self) {
        self.activity.kill();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let done = ready!(Pin::new(&mut self.stream).poll_read(cx, buf));
        match buf.filled().len() - before {
            0 => self.activity.kill(),
            bytes => self.activity.note(bytes),
        }
        Poll::Ready(done)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let done = ready!(Pin::new(&mut self.stream).poll_write(cx, buf));
        match &done {
            Ok(bytes) => self.activity.note(*bytes),
            Err(_) => self.activity.kill(),
        }
        Poll::Ready(done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
