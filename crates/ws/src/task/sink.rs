//! `Stream` and `Sink`, for code that is written against them.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_sink::Sink;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{AsMessage, Incoming, ReceiveHalf, SendHalf, WebSocket};
use crate::Error;

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for WebSocket<S> {
    type Item = Result<Incoming, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.driver.poll_recv(cx).map(Result::transpose)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for ReceiveHalf<S> {
    type Item = Result<Incoming, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_recv(cx).map(Result::transpose)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin, M: AsMessage> Sink<M> for WebSocket<S> {
    type Error = Error;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.driver.poll_ready(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, message: M) -> Result<(), Error> {
        self.driver.queue(message.as_message())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.driver.poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.driver.begin_normal_close();
        self.driver.discard_messages();
        self.driver.poll_closed(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin, M: AsMessage> Sink<M> for SendHalf<S> {
    type Error = Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Self::poll_ready(&self, cx)
    }

    fn start_send(self: Pin<&mut Self>, message: M) -> Result<(), Error> {
        self.queue(&message)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Self::poll_flush(&self, cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_normal_close(cx)
    }
}
