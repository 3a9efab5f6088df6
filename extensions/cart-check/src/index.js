// What the platform runs, by the name in shopify.extension.toml.
export * from './cart_validations_generate_run.js';
