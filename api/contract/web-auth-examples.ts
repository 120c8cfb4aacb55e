export const webUserExample = {
  id: '5b0c8f0e-7a53-4a58-9d2f-6c1f0f8e3a77',
  email: 'anna@example.com',
  timezone: 'Europe/Moscow',
  created_at: '2025-11-20T09:12:31.000Z',
  last_login_at: '2025-11-21T08:00:12.000Z',
};

export const authResultExample = {
  user: webUserExample,
  csrf_token: 'qk2bZ0m8v3Yc9m1JQmH0Xr5Zt1sJkq3wQ0e7nVd2aLs',
};

const challengeId = 'Zr8mN2xQv0cT4kYw7bJ1eHs5uLd9aGfP';

export const captchaChallengeExample = {
  body: { purpose: 'login' },
  response: {
    challenge_id: challengeId,
    image: 'data:image/webp;base64,UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA',
    prompt_image: 'data:image/webp;base64,UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA',
    width: 480,
    height: 320,
    expires_in: 300,
  },
};

export const captchaVerifiedExample = {
  body: {
    challenge_id: challengeId,
    points: [
      { x: 1_250, y: 7_400 },
      { x: 8_310, y: 2_050 },
      { x: 5_020, y: 5_110 },
      { x: 3_600, y: 1_480 },
    ],
  },
  response: { success: true, captcha_token: 'pT3vX9sKq6wLz1yBn8cRf4hMj0dGu2oEa7iVt5kQ' },
};

export const codeRequestedExample = {
  body: {
    email: 'anna@example.com',
    purpose: 'login',
    captcha_token: captchaVerifiedExample.response.captcha_token,
  },
  response: {
    challenge_id: '0f6d2c0a-51f4-4f0e-8a9b-2f3f5f0f6f11',
    expires_at: '2025-11-21T08:10:00.000Z',
  },
};

export const sessionsExample = [
  {
    id: 'c2a5f9d6-3f0b-4b1e-9f6a-8d7e5c4b3a21',
    current: true,
    remember_me: true,
    os_name: 'Windows',
    browser_name: 'Firefox',
    device_type: 'desktop',
    ip_created: '203.0.113.7',
    ip_last_used: '203.0.113.7',
    created_at: '2025-11-20T09:12:31.000Z',
    last_used_at: '2025-11-21T08:00:00.000Z',
    expires_at: '2025-12-21T08:00:00.000Z',
  },
] as const;
