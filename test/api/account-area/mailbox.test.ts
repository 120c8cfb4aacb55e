import test from 'ava';
import { findMailbox } from '../../../api/account-area/mailbox.ts';

const same: Readonly<Record<string, readonly string[]>> = {
  'ann@example.com': ['ann@example.com', 'ann+1@example.com', 'ann+a+b@example.com'],
  'annlee@gmail.com': ['a.n.n.lee@gmail.com', 'annlee+x.y@googlemail.com', 'ann.lee@googlemail.com'],
  'ann-lee@yandex.ru': ['ann.lee@ya.ru', 'ann-lee@yandex.com', 'ann.lee+x@yandex.kz'],
  'annlee@proton.me': ['ann_lee@protonmail.com', 'ann-lee+x@pm.me', 'ann.lee@proton.me'],
  'ann.lee@icloud.com': ['ann.lee@me.com', 'ann.lee+x@mac.com'],
  'ann.lee@yahoo.com': ['ann.lee-shop@yahoo.com', 'ann.lee@yahoo.com'],
};

for (const [mailbox, emails] of Object.entries(same)) {
  test(`${emails.join(', ')} are one mailbox`, (t) => {
    for (const email of emails) t.is(findMailbox(email), mailbox);
  });
}

test('what may be another mailbox stays another one', (t) => {
  const others = [
    'ann.lee@example.com',
    'annlee@example.com',
    'ann-lee@gmail.com',
    'annlee@gmail.com.test',
    'annlee@ya.ru',
  ];
  t.is(new Set(others.map((email) => findMailbox(email))).size, others.length);
});

test('an address without a name before its alias is a mailbox of its own', (t) => {
  t.is(findMailbox('+1@example.com'), '+1@example.com');
  t.is(findMailbox('_@proton.me'), '_@proton.me');
});
