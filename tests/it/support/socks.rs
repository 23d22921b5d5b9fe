//! A SOCKS5 proxy (RFC 1928, RFC 1929) that forwards every name to one relay and records the
//! requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// A request to the proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The user name by which the client separates its streams.
    pub user: String,
    /// The name as the client sent it, or the address in text if it sent one.
    pub host: String,
    /// Whether the client sent a name, which the proxy must resolve.
    pub is_name: bool,
    pub port: u16,
}

/// A running proxy.
pub struct Socks {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Socks {
    /// Starts a proxy that connects every name to `relay`. It resolves nothing.
    pub async fn start(relay: SocketAddr) -> Socks {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, asked) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<Asked>>>::default());
        let noted = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, relay, Arc::clone(&noted)));
            }
        });
        Socks { address, asked }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(mut client: TcpStream, relay: SocketAddr, asked: Arc<Mutex<Vec<Asked>>>) -> std::io::Result<()> {
    let mut head = [0; 2];
    client.read_exact(&mut head).await?;
    let mut methods = vec![0; usize::from(head[1])];
    client.read_exact(&mut methods).await?;
    assert!(head[0] == 5 && methods.contains(&2), "{head:?} {methods:?}");
    client.write_all(&[5, 2]).await?;
    client.read_exact(&mut head[..1]).await?;
    let user = text(&mut client).await?;
    text(&mut client).await?;
    client.write_all(&[1, 0]).await?;
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    let (is_name, host) = match request[3] {
        1 => {
            let mut address = [0; 4];
            client.read_exact(&mut address).await?;
            (false, std::net::Ipv4Addr::from(address).to_string())
        }
        _ => (true, text(&mut client).await?),
    };
    let port = client.read_u16().await?;
    asked.lock().unwrap().push(Asked { user, host, is_name, port });
    let mut upstream = TcpStream::connect(relay).await?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    copy_bidirectional(&mut client, &mut upstream).await.map(|_| ())
}

/// A text with its length in the byte before it.
async fn text(client: &mut TcpStream) -> std::io::Result<String> {
    let mut text = vec![0; usize::from(client.read_u8().await?)];
    client.read_exact(&mut text).await?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
