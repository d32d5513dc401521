//! Sends every message back: `cargo run --package anemone-ws --example server`

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on ws://{}/", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let mut socket = anemone_ws::accept(stream).await?.socket;
            while let Some(message) = socket.recv().await? {
                socket.send(message).await?;
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        });
    }
}
