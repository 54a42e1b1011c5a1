/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An HTTP server and client of the JDK, unaware of where their octets go; and a selector's echo.
 *
 *     java Http.java serve PORT NIO     files of this folder, and an echo
 *     java Http.java fetch PORT NAME..  each at once, as often as there are names, SHA-256 printed
 *     java Http.java echo PORT NAME     there and back, compared
 */
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;

public class Http {
	static final String HOST = System.getenv().getOrDefault("SERVE_AT", "127.0.0.1");

	static InetSocketAddress at(String port) {
		return new InetSocketAddress(HOST, Integer.parseInt(port));
	}

	static void serve(String port, String nio) throws Exception {
		HttpServer server = HttpServer.create(at(port), 0);
		server.createContext("/", exchange -> {
			byte[] file = Files.readAllBytes(
				Path.of(exchange.getRequestURI().getPath().substring(1)));
			exchange.sendResponseHeaders(200, file.length == 0 ? -1 : file.length);
			try (OutputStream body = exchange.getResponseBody()) {
				body.write(file);
			}
		});
		server.setExecutor(Executors.newFixedThreadPool(4));
		server.start();
		select(nio);
	}

	static void select(String port) throws IOException {
		Selector selector = Selector.open();
		ServerSocketChannel listener = ServerSocketChannel.open();
		listener.bind(at(port)).configureBlocking(false);
		listener.register(selector, SelectionKey.OP_ACCEPT);
		while (true) {
			selector.select();
			for (SelectionKey key : selector.selectedKeys())
				if (key.isAcceptable())
					accept(listener, selector);
				else
					echoOrEnd(key);
			selector.selectedKeys().clear();
		}
	}

	static void accept(ServerSocketChannel listener, Selector selector) throws IOException {
		SocketChannel channel = listener.accept();
		if (channel == null)
			return;
		channel.configureBlocking(false);
		channel.register(selector, SelectionKey.OP_READ, ByteBuffer.allocateDirect(65536));
	}

	static void echoOrEnd(SelectionKey key) throws IOException {
		try {
			echo(key);
		} catch (IOException e) { /* a reset is one connection's */
			key.channel().close();
		}
	}

	/* What does not go now goes when there is room; nothing is read before */
	static void echo(SelectionKey key) throws IOException {
		SocketChannel channel = (SocketChannel) key.channel();
		ByteBuffer buffer = (ByteBuffer) key.attachment();
		int n = key.isReadable() ? channel.read(buffer) : 0;
		buffer.flip();
		channel.write(buffer);
		boolean left = buffer.hasRemaining();
		buffer.compact();
		if (n < 0 && !left)
			channel.close();
		else
			key.interestOps(left ? SelectionKey.OP_WRITE : SelectionKey.OP_READ);
	}

	static String digest(byte[] octets) throws Exception {
		return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(octets));
	}

	static void fetch(String port, List<String> names) throws Exception {
		HttpClient client = HttpClient.newHttpClient();
		List<CompletableFuture<HttpResponse<byte[]>>> all = new ArrayList<>();
		for (String name : names)
			all.add(client.sendAsync(
				HttpRequest.newBuilder(URI.create("http://" + HOST + ":" + port + "/" + name)).build(),
				HttpResponse.BodyHandlers.ofByteArray()));
		for (int i = 0; i < names.size(); i++)
			System.out.println(names.get(i) + " " + digest(all.get(i).join().body()));
	}

	static void there(String port, String name) throws Exception {
		byte[] sent = Files.readAllBytes(Path.of(name));
		try (Socket socket = new Socket(HOST, Integer.parseInt(port))) {
			CompletableFuture<Void> writer = CompletableFuture.runAsync(() -> {
				try {
					socket.getOutputStream().write(sent);
					socket.shutdownOutput();
				} catch (IOException e) {
					throw new RuntimeException(e);
				}
			});
			InputStream in = socket.getInputStream();
			byte[] back = in.readAllBytes();
			writer.join();
			System.out.println(Arrays.equals(sent, back) ? "the same" : "other octets");
		}
	}

	public static void main(String[] args) throws Exception {
		switch (args[0]) {
		case "serve" -> serve(args[1], args[2]);
		case "fetch" -> fetch(args[1], Arrays.asList(args).subList(2, args.length));
		default -> there(args[1], args[2]);
		}
	}
}
