/** Express Gateway with its own policies: key-auth, rate-limit in Redis, proxy. The argument is its config folder. */
require('express-gateway')().load(process.argv[2]).run();
