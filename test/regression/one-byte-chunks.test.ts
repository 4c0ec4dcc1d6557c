/**
 * Each chunk of the backend was written to the client by itself, with a buffer and four queue entries of its own. In
 * chunks of one byte, a response that its client did not read cost 8 to 14 MB of the gateway's memory, and seconds of CPU
 * time, where 350 KB are documented: a client has but to find a resource that the backend streams in small pieces.
 */
import { createHash } from 'node:crypto';
import { get } from 'node:http';
import { expect, test } from 'vitest';
import { ResponseParser } from '../../src/upstream/http1/response-parser.ts';
import { startGateway } from '../upstream/support/gateway.ts';
import { startRawUpstream } from '../upstream/support/upstreams.ts';

const HEAD = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';

test.each([1, 2, 7])('chunks of %i bytes that come with one read are passed on as one piece', (size) => {
  const pieces: string[] = [];
  const parser = new ResponseParser(16_384);
  const sink = {
    onHead() {},
    onContent: (bytes: Buffer, start: number, end: number) => void pieces.push(bytes.toString('latin1', start, end)),
  };
  const data = 'abcdefg'.slice(0, size);
  const read = (text: string) => {
    const bytes = Buffer.from(text);
    parser.receive(bytes, bytes.length);
  };
  parser.expect(sink, false);
  read(HEAD);
  read(`${size}\r\n${data}\r\n`.repeat(5_000));
  expect(pieces).toEqual([data.repeat(5_000)]);
  read(`${`${size}\r\n${data}\r\n`.repeat(3)}0\r\n\r\n`);
  expect(pieces.slice(1)).toEqual([data.repeat(3)]);
});

test('content that the backend sends in chunks of any size arrives unchanged', async () => {
  const content = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7919) % 251));
  const upstream = await startRawUpstream((socket) => {
    socket.write(HEAD);
    for (let at = 0, size = 1; at < content.length; at += size, size = (size * 31 + 7) % 997 || 1) {
      const chunk = content.subarray(at, at + size);
      socket.write(`${chunk.length.toString(16)}\r\n`);
      socket.write(chunk);
      socket.write('\r\n');
    }
    socket.write('0\r\n\r\n');
  });
  const { port } = await startGateway(upstream.port);
  const hash = createHash('sha256');
  await new Promise<void>((resolve, reject) => {
    get({ port, host: '127.0.0.1' }, (res) => res.on('data', (chunk) => hash.update(chunk)).once('end', resolve)).once(
      'error',
      reject,
    );
  });
  expect(hash.digest('hex')).toBe(createHash('sha256').update(content).digest('hex'));
});
