import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { fieldValue, fieldValues } from './support/http-reader.ts';
import { get, head, useHttpSystem } from './support/system.ts';

const system = useHttpSystem();
const { attempt, expectPassed, expectRefused } = system;
const PATH = '/v1/conversations';

describe('only GET and HEAD reach the backend', () => {
  // Those that Node.js's parser knows, and some that it does not.
  const KNOWN =
    'ACL BIND CHECKOUT COPY DELETE LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL MOVE NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE';
  const UNKNOWN = 'FOO get Get head gET GETT GE G HEADX POSTX DEBUG TRACK X-GET GET. GET* !GET ~ 0';

  it.each([...KNOWN.split(' '), ...UNKNOWN.split(' ')])('%s is refused with what is allowed', async (method) => {
    for (const path of [PATH, `${PATH}/x?y=z`, `/api${PATH}`]) {
      const answer = await expectRefused(get(path).replace('GET', method), 'method_not_allowed', 'bad_request');
      expect(answer?.status).toBe(405);
    }
    expect((await expectRefused(get('/nowhere').replace('GET', method), 'not_found'))?.status).toBe(404);
  });

  it.each(['G(T', 'G ET', 'GET,', '"GET"', 'GET/', '<GET>', 'G\xcbT', 'G\0T', '[GET]', '{}', '@GET', 'GE\x7f'])(
    'the method %j is none',
    async (method) => {
      await expectRefused(get().replace('GET', method), 'bad_request');
    },
  );

  // Node.js's parser knows them from RTSP and HTTP/2, and takes them nowhere else.
  it.each(['DESCRIBE', 'PLAY', 'RECORD', 'PRI', 'SETUP', 'GET_PARAMETER'])('%s is refused', async (method) => {
    await expectRefused(get().replace('GET', method), 'bad_request');
  });

  it('a header that overrides the method is ignored, and not forwarded', async () => {
    for (const name of ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', 'x_http_method_override']) {
      for (const method of ['POST', 'DELETE', 'CONNECT']) await expectPassed(get(PATH, `${name}: ${method}`));
    }
  });

  it('OPTIONS offers nothing to browsers', async () => {
    const preflight = get(PATH, 'Origin: https://a.example', 'Access-Control-Request-Method: GET').replace(
      'GET',
      'OPTIONS',
    );
    const answer = await expectRefused(preflight, 'method_not_allowed');
    expect(answer?.fields.filter(([name]) => /^access-control/i.test(name))).toEqual([]);
  });
});

describe('there is no way to another protocol', () => {
  it.each(['h2c', 'HTTP/2.0', 'TLS/1.0', 'connect-udp', 'websockets', 'not-websocket', 'x', ''])(
    'Upgrade: %s is not performed: the response is HTTP/1.1, and the backend does not get the header',
    async (protocol) => {
      for (const connection of [
        'Upgrade',
        'upgrade',
        'keep-alive, Upgrade',
        'Upgrade, HTTP2-Settings',
        'close, Upgrade',
        '',
      ]) {
        for (const method of ['GET', 'HEAD']) {
          const { answer } = await expectPassed(
            get(
              PATH,
              `Connection: ${connection}`,
              `Upgrade: ${protocol}`,
              'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA',
              'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
              'Sec-WebSocket-Version: 13',
            ).replace('GET', method),
          );
          expect(fieldValues(answer, 'upgrade')).toEqual([]);
        }
      }
    },
  );

  it.each(['websocket', 'WebSocket', 'h2c, websocket', 'websocket/13', 'websocket , h2c'])(
    'Upgrade: %s is refused, free of charge',
    async (protocol) => {
      for (const connection of ['Upgrade', 'keep-alive, Upgrade', '']) {
        await expectRefused(get(PATH, `Connection: ${connection}`, `Upgrade: ${protocol}`), 'not_implemented');
      }
    },
  );

  it('the preface of HTTP/2 is refused', async () => {
    const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
    await expectRefused(preface, 'bad_request');
    await expectRefused(`${preface}\0\0\0\x04\0\0\0\0\0`, 'bad_request');
    const after = await attempt(get() + preface, { answers: 2 });
    expect([after.answers.map(({ status }) => status), after.seen.length]).toEqual([[200, 400], 1]);
  });

  it.each([
    'api.example:443',
    '127.0.0.1:22',
    '[::1]:80',
    'api.example',
    '/v1/conversations',
    '*',
    'http://api.example/',
  ])('CONNECT %s is refused', async (target) => {
    for (const version of ['1.0', '1.1']) {
      const bytes = head(`CONNECT ${target} HTTP/${version}`, 'Host: api.example', 'Authorization: Bearer KEY');
      await expectRefused(bytes, 'bad_request');
      await expectRefused(bytes + get(), 'bad_request');
    }
  });

  it('CONNECT behind another request is refused after the response to that request', async () => {
    const { answers, seen, end } = await attempt(get() + head('CONNECT a:1 HTTP/1.1', 'Host: a') + get(), {
      answers: 2,
    });
    expect(answers.map(({ status }) => status)).toEqual([200, 400]);
    expect([seen.length, end]).toEqual([1, 'closed']);
  });

  it('a client that resets the connection after its CONNECT does no harm', async () => {
    for (const bytes of [
      'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
      `${get().replace('KEY', system.key)}CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n`,
    ]) {
      await new Promise<void>((closed) => {
        const socket = connect(system.port, '127.0.0.1', () => socket.write(bytes));
        socket.once('data', () => socket.resetAndDestroy());
        socket.once('close', () => closed());
      });
    }
    system.sentOtherwise(1);
    await expectPassed(get());
  });
});

describe('HTTP/1.0', () => {
  const old = (...fields: string[]) => get(PATH, ...fields).replace('HTTP/1.1', 'HTTP/1.0');

  it('gets a response in its own version, and the connection is closed', async () => {
    for (const fields of [[], ['Connection: close'], ['Connection: x'], ['Keep-Alive: 5']]) {
      const { answer, seen } = await expectPassed(old(...fields));
      expect(fieldValue(answer, 'connection')).toBe('close');
      expect(fieldValue(seen, 'via')).toBe('1.0 tollgate');
    }
  });

  it('keeps the connection where it asks for that', async () => {
    const { answers, seen, end } = await attempt(old('Connection: keep-alive') + old('Connection: keep-alive'), {
      answers: 2,
    });
    expect([answers.map(({ status }) => status), seen.length, end]).toEqual([[200, 200], 2, 'kept']);
  });

  it('without that, what follows is not looked at', async () => {
    const { answers, seen, end } = await attempt(old() + old());
    expect([answers.map(({ status }) => status), seen.length, end]).toEqual([[200], 1, 'closed']);
  });

  it('gets refusals like any other', async () => {
    const answer = await expectRefused(old().replace('Bearer KEY', 'Bearer unknown-key'), 'invalid_key');
    expect(fieldValue(answer ?? { fields: [] }, 'connection')).toBe('close');
  });
});

describe('an expectation', () => {
  it.each(['100-continue', '100-Continue', '100-CONTINUE', '', ' 100-continue '])(
    '%j gets the final response directly',
    async (value) => {
      for (const method of ['GET', 'HEAD']) {
        for (const version of ['1.0', '1.1']) {
          const { answer } = await expectPassed(
            get(PATH, `Expect:${value}`).replace('GET', method).replace('HTTP/1.1', `HTTP/${version}`),
          );
          expect(answer.status).toBe(200);
        }
      }
    },
  );

  it.each([
    '200-ok',
    '100-continue, x',
    'x, 100-continue',
    '100-continue;q=1',
    '"100-continue"',
    '100',
    'continue',
    '100-continue 100-continue',
    '417',
  ])('%j is refused, for it cannot be met', async (value) => {
    await expectRefused(get(PATH, `Expect: ${value}`), 'expectation_failed');
    await expectRefused(get(PATH, `expect: ${value}`).replace('GET', 'HEAD'), 'expectation_failed');
    await expectRefused(get(PATH, 'Expect: 100-continue', `Expect: ${value}`), 'expectation_failed');
  });

  it('invites no content', async () => {
    for (const fields of [['Content-Length: 5'], ['Transfer-Encoding: chunked']]) {
      const bytes = get(PATH, 'Expect: 100-continue', ...fields);
      for (const method of ['GET', 'HEAD']) await expectRefused(bytes.replace('GET', method), 'body_not_allowed');
      for (const method of ['POST', 'PUT']) {
        const answer = await expectRefused(bytes.replace('GET', method), 'method_not_allowed');
        expect(fieldValue(answer ?? { fields: [] }, 'connection')).toBe('close');
      }
    }
  });
});
