import test from 'ava';
import { readCorsOrigins } from '../../../../shared/platform/config/cors-origins.ts';

test('origins are normalized to the form that browsers send', (t) => {
  const text = 'https://App.Example/, http://localhost:5173\nhttps://b.example:443  http://[::1]:8080';
  t.deepEqual(readCorsOrigins(text), {
    origins: new Set([
      'https://app.example',
      'http://localhost:5173',
      'https://b.example',
      'http://[::1]:8080',
    ]),
    wrong: [],
  });
  const apps = ['chrome-extension://aapbdbdomjkkjkaonfhkkikfgjllcleb', 'capacitor://localhost'];
  t.deepEqual(readCorsOrigins(apps.join(',')), { origins: new Set(apps), wrong: [] });
});

test('a single star allows any origin, and an empty list allows none', (t) => {
  t.deepEqual(readCorsOrigins(' * '), { origins: '*', wrong: [] });
  for (const text of ['', ' ', ' , ']) t.deepEqual(readCorsOrigins(text), { origins: null, wrong: [] });
});

test('an invalid origin is reported', (t) => {
  const wrong = [
    'app.example',
    'localhost:5173',
    'https://app.example/page',
    'https://app.example?a=1',
    'https://user@app.example',
    'https://*.example',
    'https://',
    'null',
    '*',
    'file:///',
  ];
  t.deepEqual(readCorsOrigins([...wrong, 'https://a.example'].join(',')).wrong, wrong);
});
