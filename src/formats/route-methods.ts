/**
 * Not an `import`, which reads every export of the module: that of `WebSocket` loads undici, a fifth of the start of a
 * thread that parses a file.
 */
const { METHODS } = process.getBuiltinModule('node:http');

/** CONNECT and TRACE are for proxies (RFC 9110 §9.3.6, §9.3.8). A method that the parser lacks never arrives. */
export const ROUTE_METHODS = METHODS.filter((name) => name !== 'CONNECT' && name !== 'TRACE');
